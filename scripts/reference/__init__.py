"""Reference pages, made from the code itself when the documentation is built."""
