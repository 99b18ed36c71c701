"""Which polygon a point lies in, and which is nearest in metres, for many points at once."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from attnmove.nouns import EARTH_RADIUS_M, Float64, Int64, distance_m
from attnmove.space.features import Shapes

NONE = -1
"""The position of a point that has no polygon."""

_CHUNK = 4_096
"""Points asked about at once: their geometries then fit the processor's cache."""

_NARROW_M = 100.0
_METRES_PER_DEGREE = np.pi / 180 * EARTH_RADIUS_M


@dataclass(frozen=True)
class Edges:
    """Every straight piece of the outlines and holes of an array of polygons, in degrees."""

    polygon: Int64
    """(E,) the position of the polygon it belongs to."""
    start: Float64
    """(E, 2) longitude, latitude."""
    end: Float64


def edges_of(polygons: Shapes) -> Edges:
    """The edges of `polygons` (Polygon or MultiPolygon)."""
    parts, polygon_of_part = shapely.get_parts(polygons, return_index=True)
    rings, part_of_ring = shapely.get_rings(parts, return_index=True)
    corners, ring_of_corner = shapely.get_coordinates(rings, return_index=True)
    same_ring = ring_of_corner[1:] == ring_of_corner[:-1]
    polygon = polygon_of_part[part_of_ring[ring_of_corner[:-1][same_ring]]]
    return Edges(polygon.astype(np.int64), corners[:-1][same_ring], corners[1:][same_ring])


def area_m2(polygons: Shapes) -> Float64:
    """Square metres on the sphere, by the cylindrical projection that keeps areas."""

    def project(corners: Float64) -> Float64:
        lon, lat = np.radians(corners).T
        return EARTH_RADIUS_M * np.column_stack([lon, np.sin(lat)])

    out: Float64 = shapely.area(shapely.transform(polygons, project))
    return out


def perimeter_m(polygons: Shapes) -> Float64:
    """Metres around each polygon and its holes."""
    edges = edges_of(polygons)
    length = distance_m(edges.start[:, 0], edges.start[:, 1], edges.end[:, 0], edges.end[:, 1])
    out: Float64 = np.bincount(edges.polygon, weights=length, minlength=len(polygons)).astype(np.float64)
    return out


class PolygonIndex:
    """Search trees over polygons, which are named by their position.

    A point in several polygons belongs to the smallest of them, of equal ones to the first.
    """

    def __init__(self, polygons: Shapes) -> None:
        # Ordered by size, the smallest polygon of several is the first of them.
        self._position: Int64 = np.argsort(area_m2(polygons), kind="stable")
        self._polygons = polygons[self._position]
        self._tree = shapely.STRtree(self._polygons)
        self._edges = edges_of(polygons)
        self._edge_tree = shapely.STRtree(shapely.linestrings(np.stack([self._edges.start, self._edges.end], axis=1)))
        self._bounds: Float64 = shapely.total_bounds(polygons)
        shapely.prepare(self._polygons)
        # GEOS completes a prepared polygon and a tree while answering the first questions, so two threads that ask at
        # once end the process: the polygons are asked one thread at a time, the trees once here.
        self._one_at_a_time = threading.Lock()
        self._tree.query(shapely.Point(0, 0))
        self._edge_tree.query(shapely.Point(0, 0))

    def find(self, lon: Float64, lat: Float64, snap_m: float) -> Int64:
        """The polygon each point lies in, else the nearest within `snap_m` metres, else NONE; not for NaN."""
        found = np.full(len(lon), NONE, dtype=np.int64)
        for start in range(0, len(lon), _CHUNK):
            part = slice(start, start + _CHUNK)
            found[part] = self.containing(lon[part], lat[part])
        if snap_m > 0:
            outside = np.flatnonzero(found == NONE)
            for start in range(0, len(outside), _CHUNK):
                rows = outside[start : start + _CHUNK]
                found[rows] = self.nearest(lon[rows], lat[rows], snap_m)
        return found

    def containing(self, lon: Float64, lat: Float64) -> Int64:
        """The polygon each point lies in or on the edge of, NONE where there is none."""
        point, candidate = self._tree.query(shapely.points(lon, lat))
        polygons, x, y = self._polygons[candidate], lon[point], lat[point]
        with self._one_at_a_time:
            inside = shapely.intersects_xy(polygons, x, y)
        first = _smallest(point[inside], candidate[inside], len(lon), len(self._polygons))
        return np.append(self._position, NONE)[first]

    def nearest(self, lon: Float64, lat: Float64, within_m: float) -> Int64:
        """The polygon with the edge nearest to each point, NONE where none is within `within_m` metres.

        Metres are those of a plane that touches the Earth at the point. Polygons less than a millimetre apart in
        distance are equally near; the first of them is the answer. Nothing is near across the antimeridian.
        """
        found = np.full(len(lon), NONE, dtype=np.int64)
        wide, high = _degrees_around(lat, within_m)
        west, south, east, north = self._bounds
        near = np.flatnonzero(
            (lon >= west - wide) & (lon <= east + wide) & (lat >= south - high) & (lat <= north + high)
        )
        radius_m = np.full(len(near), min(within_m, _NARROW_M), dtype=np.float64)
        found[near] = self._nearest_edge(lon[near], lat[near], radius_m)
        if within_m > _NARROW_M:
            left = near[found[near] == NONE]
            point, edge = self._edge_tree.query_nearest(
                shapely.points(lon[left], lat[left]), max_distance=wide.max(), all_matches=False
            )
            # The edge nearest in degrees bounds the distance in metres, so that a wide search meets few edges.
            left = left[point]
            bound_m = self._metres_to(edge, lon[left], lat[left]) + 1e-3
            found[left] = self._nearest_edge(lon[left], lat[left], np.minimum(bound_m, within_m))
        return found

    def centres(self) -> Float64:
        """(n, 2) a point in each polygon: the centroid where `containing` answers with the polygon itself there.

        Otherwise a point of the part that no smaller polygon covers, where there is such a part.
        """
        by_position = np.argsort(self._position)
        polygons = self._polygons[by_position]
        centre = shapely.centroid(polygons)
        # A centroid is computed, so one on an edge may lie just outside; contains_properly keeps off the edge.
        centre = np.where(shapely.contains_properly(polygons, centre), centre, shapely.point_on_surface(polygons))
        out: Float64 = shapely.get_coordinates(centre)
        answer = self.find(out[:, 0], out[:, 1], 0)
        for i in np.flatnonzero(answer != np.arange(len(polygons))).tolist():
            touching = self._tree.query(polygons[i], predicate="intersects")
            smaller = self._polygons[touching[touching < by_position[i]]]
            left = shapely.difference(polygons[i], shapely.union_all(smaller))
            if not left.is_empty:
                out[i] = shapely.get_coordinates(shapely.point_on_surface(left))[0]
        return out

    def _nearest_edge(self, lon: Float64, lat: Float64, radius_m: Float64) -> Int64:
        wide, high = _degrees_around(lat, radius_m)
        point, edge = self._edge_tree.query(shapely.box(lon - wide, lat - high, lon + wide, lat + high))
        distance = np.round(self._metres_to(edge, lon[point], lat[point]), 3)
        shortest = radius_m.copy()
        np.minimum.at(shortest, point, distance)
        best = distance <= shortest[point]
        n_polygons = len(self._polygons)
        first = _smallest(point[best], self._edges.polygon[edge[best]], len(lon), n_polygons)
        return np.where(first == n_polygons, NONE, first)

    def _metres_to(self, edge: Int64, lon: Float64, lat: Float64) -> Float64:
        """How far each point is from the edge paired with it."""
        origin = np.column_stack([lon, lat])
        metres = _METRES_PER_DEGREE * np.column_stack([np.cos(np.radians(lat)), np.ones(len(lat))])
        start = (self._edges.start[edge] - origin) * metres
        return _distance_from_origin(start, (self._edges.end[edge] - origin) * metres)


def _smallest(point: Any, value: Any, n_points: int, otherwise: int) -> Int64:
    """For each point the smallest value paired with it, `otherwise` where it has no pair."""
    smallest = np.full(n_points, otherwise, dtype=np.int64)
    np.minimum.at(smallest, point, value)
    return smallest


def _degrees_around(lat: Float64, radius_m: Float64 | float) -> tuple[Float64, Float64]:
    """Degrees of longitude and of latitude that `radius_m` metres span at `lat`."""
    high = np.broadcast_to(np.asarray(radius_m) / _METRES_PER_DEGREE, lat.shape)
    return np.minimum(high / np.maximum(np.cos(np.radians(lat)), 1e-9), 360.0), high


def _distance_from_origin(start: Float64, end: Float64) -> Float64:
    """Distance of (0, 0) from each line piece in the plane."""
    along = end - start
    squared = np.maximum((along**2).sum(axis=1), np.finfo(np.float64).tiny)
    share = np.clip(-(start * along).sum(axis=1) / squared, 0.0, 1.0)
    nearest = start + share[:, None] * along
    out: Float64 = np.hypot(nearest[:, 0], nearest[:, 1])
    return out
