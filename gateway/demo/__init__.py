"""The bundled legacy server: what `era-gateway demo` puts behind the gateway.

A real 2025-11-25 Streamable HTTP server in little code: sessions, a GET stream, questions in mid-call, resumable
streams. Nothing of the gateway's own machinery may be used here, or the demo would prove nothing. May import only
`wire`, starlette, uvicorn (in `__main__`) and the standard library.
"""
