"""Where trials run: each world implements the ports and knows no policy."""
