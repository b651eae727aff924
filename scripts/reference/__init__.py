"""Reference pages, generated from the code when the documentation is built."""
