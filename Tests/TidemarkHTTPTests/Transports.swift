import TidemarkHTTP

/// The transports that are there.
enum Transports: String, Sendable, CaseIterable {
  case urlSession
  #if AsyncHTTPClient
    case asyncHTTPClient
  #endif

  static var all: [Transports] { allCases }

  func make() -> any HTTPTransport {
    switch self {
    case .urlSession: URLSessionTransport()
    #if AsyncHTTPClient
      case .asyncHTTPClient: AsyncHTTPClientTransport()
    #endif
    }
  }
}
