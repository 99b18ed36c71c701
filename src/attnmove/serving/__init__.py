"""The web service: the app, what goes over the wire, the map page."""
