from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from attnmove.errors import RunError
from attnmove.nouns import Locations
from attnmove.space import read_locations, write_locations


def locations(geometry: list[bytes | None] | None) -> Locations:
    return Locations(
        name=np.array(["a", "b", "c"], dtype=object),
        lon=np.array([116.5, 117.5, np.nan]),
        lat=np.array([39.5, 40.5, np.nan]),
        key=np.array([7, 2**40, -5]),
        geometry=geometry,
    )


def test_locations_come_back_as_they_were(tmp_path: Path) -> None:
    outline = shapely.to_wkb(shapely.box(116, 39, 117, 40))
    written = locations([outline, shapely.to_wkb(shapely.Point(117.5, 40.5)), None])
    write_locations(tmp_path / "locations.parquet", written)
    read = read_locations(tmp_path / "locations.parquet")
    assert read.name.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(read.centres, written.centres)
    assert read.key.tolist() == [7, 2**40, -5]
    assert read.geometry == written.geometry


def test_the_file_is_geoparquet_with_the_box_of_its_shapes(tmp_path: Path) -> None:
    multi = shapely.MultiPolygon([shapely.box(100, 10, 101, 11), shapely.box(116, 39, 117, 40)])
    write_locations(tmp_path / "locations.parquet", locations([shapely.to_wkb(multi), None, None]))
    schema = pq.read_schema(tmp_path / "locations.parquet")
    assert schema.names == ["id", "name", "lon", "lat", "key", "geometry"]
    assert schema.types == [pa.int32(), pa.string(), pa.float64(), pa.float64(), pa.int64(), pa.binary()]
    geo = json.loads(schema.metadata[b"geo"])
    assert geo == {
        "version": "1.1.0",
        "primary_column": "geometry",
        "columns": {
            "geometry": {
                "encoding": "WKB",
                "geometry_types": ["MultiPolygon", "Point"],
                "bbox": [100.0, 10.0, 117.5, 40.5],
            }
        },
    }


def test_a_location_without_an_outline_is_a_point_and_without_a_place_is_null(tmp_path: Path) -> None:
    write_locations(tmp_path / "locations.parquet", locations(None))
    table = pq.read_table(tmp_path / "locations.parquet")
    stored = table["geometry"].to_pylist()
    assert [shapely.from_wkb(wkb) for wkb in stored] == [shapely.Point(116.5, 39.5), shapely.Point(117.5, 40.5), None]
    assert table["lon"].to_pylist() == [116.5, 117.5, None]


def test_locations_without_places_come_back_without_geometry(tmp_path: Path) -> None:
    nowhere = Locations(np.array(["x"], dtype=object), np.array([np.nan]), np.array([np.nan]), np.array([0]))
    write_locations(tmp_path / "locations.parquet", nowhere)
    read = read_locations(tmp_path / "locations.parquet")
    assert read.geometry is None
    assert np.isnan(read.lon[0])
    metadata = json.loads(pq.read_schema(tmp_path / "locations.parquet").metadata[b"geo"])
    assert metadata["columns"]["geometry"] == {"encoding": "WKB", "geometry_types": []}


def test_a_file_that_is_not_parquet_or_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "locations.parquet"
    path.write_text("id,name\n")
    with pytest.raises(RunError, match="cannot be read"):
        read_locations(path)
    write_locations(path, locations(None))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RunError, match="cannot be read"):
        read_locations(path)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"nowhere\.parquet: there is no such file"):
        read_locations(tmp_path / "nowhere.parquet")


def test_locations_cannot_be_written_into_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written"):
        write_locations(tmp_path / "missing" / "locations.parquet", locations(None))


def test_a_table_that_lacks_a_column_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [0], "name": ["a"]}), tmp_path / "locations.parquet")
    with pytest.raises(RunError, match="has a column lon, found id, name"):
        read_locations(tmp_path / "locations.parquet")


def test_a_table_with_text_for_keys_or_ids_out_of_order_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "locations.parquet"
    write_locations(path, locations(None))
    table = pq.read_table(path)
    pq.write_table(table.set_column(4, "key", pa.array(["x", "y", "z"])), path)
    with pytest.raises(RunError, match="this is no table of locations"):
        read_locations(path)
    pq.write_table(table.take([1, 0, 2]), path)
    with pytest.raises(RunError, match="must be 0, 1, 2"):
        read_locations(path)


def test_reading_locations_needs_neither_shapely_nor_h3ronpy(tmp_path: Path) -> None:
    write_locations(tmp_path / "locations.parquet", locations(None))
    program = (
        "import sys; sys.modules.update(shapely=None, h3ronpy=None, osmium=None)\n"
        "from pathlib import Path\n"
        "from attnmove.space import read_locations\n"
        f"assert len(read_locations(Path({str(tmp_path / 'locations.parquet')!r}))) == 3\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
