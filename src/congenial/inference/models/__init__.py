"""What an analyst believes before the release: models of counts and outcomes, and priors."""
