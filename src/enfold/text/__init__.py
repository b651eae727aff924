"""Text: exact items, words and sentences, as every part of enfold reads them."""
