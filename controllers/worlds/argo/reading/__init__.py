"""What the API server shows, as small records. Whatever it shows was written by others."""
