"""Tables given both margins."""
