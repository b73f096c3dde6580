"""Jobs as anybody writes them; they know torch and transformers, and of topolab two lines at most."""
