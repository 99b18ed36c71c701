"""The synthetic city: people, places, habits, and phones that report now and then, with the full truth beside them.

Everything runs on it without a download. People keep habits (Gonzalez et al. 2008), explore new places and return to
known ones (Song et al. 2010), travel along a street grid at finite speed, and their phones report in bursts.
"""

from attnmove.city.files import CityReport, write_city
from attnmove.city.places import City, Places, draw_places
from attnmove.city.synthesis import Chunk, synthesize

__all__ = ["Chunk", "City", "CityReport", "Places", "draw_places", "synthesize", "write_city"]
