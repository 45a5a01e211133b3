"""What is protected: the schema, the unit of protection, and tables of counts.

Import from the modules; this package imports nothing, so that reading a schema loads no database.
"""
