"""What somebody who knows the public figures may believe about the data."""
