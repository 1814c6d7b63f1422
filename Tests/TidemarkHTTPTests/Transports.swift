import TidemarkHTTP

/// The transports that are there.
enum Transports: String, Sendable, CaseIterable {
  case urlSession
  #if !canImport(Darwin) && (canImport(Glibc) || canImport(Musl))
    case curl
  #endif
  #if AsyncHTTPClient
    case asyncHTTPClient
  #endif

  static var all: [Transports] { allCases }

  /// Whether it reads no further than it is asked to, and stands whatever comes.
  var isBounded: Bool {
    #if !canImport(Darwin) && (canImport(Glibc) || canImport(Musl))
      self != .urlSession
    #else
      true
    #endif
  }

  /// Whether it takes fields on several lines, which may be refused as well (RFC 9112, 5.2).
  var unfolds: Bool {
    #if AsyncHTTPClient
      self != .asyncHTTPClient
    #else
      true
    #endif
  }

  func make() -> any HTTPTransport {
    switch self {
    case .urlSession: URLSessionTransport()
    #if !canImport(Darwin) && (canImport(Glibc) || canImport(Musl))
      case .curl: CurlTransport()
    #endif
    #if AsyncHTTPClient
      case .asyncHTTPClient: AsyncHTTPClientTransport()
    #endif
    }
  }
}
