"""The proxy: long conversations of any client go on, because what is sent fits."""
