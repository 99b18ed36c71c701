"""How the names of files end that hold polygons and roads."""

GEOJSON = (".geojson", ".geojsonl", ".json")
GEOPARQUET = (".parquet", ".geoparquet")
OSM = (".osm.pbf", ".pbf", ".osm", ".osm.xml", ".osm.gz", ".osm.bz2")
