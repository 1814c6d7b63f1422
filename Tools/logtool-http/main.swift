import LogtoolKit
import TidemarkHTTP

// The tool that `logtool` hands over to when a peer is at a URL: see LogtoolMain.
LogtoolMain.main { url, token in
  guard let token else { return try HTTPPeer(url) }
  return try HTTPPeer(url, authorization: { @Sendable _ in "Bearer \(token)" })
}
