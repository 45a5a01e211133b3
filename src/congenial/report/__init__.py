"""What people read: pages, pictures, words."""
