"""What must look alike: pairs of databases, of secrets, of laws."""
