"""What is published exactly: statements, their structure, and what they fix on a table."""
