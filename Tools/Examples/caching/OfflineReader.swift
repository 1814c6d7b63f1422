public import Tidemark
public import TidemarkHTTP
internal import TidemarkHTTPCache

/// A cache of HTTP for work without a network: pages that were read once can be read again on the
/// train, and while the server is away.
public struct OfflineReader: Sendable {
  /// A page as it was shown.
  public struct Page: Sendable, Hashable {
    public var text: String
    /// Whether it came from the store, asked about or not.
    public var isStored: Bool
  }

  private let web: HTTPCache

  /// - Parameter transport: carries the requests; nil for the platform's own.
  public init(_ store: Store, transport: (any HTTPTransport)? = nil) throws {
    let policy = HTTPCachePolicy(capacity: 1_000, bytes: 64 << 20)
    web = try HTTPCache(store: store, policy: policy, transport: transport)
  }

  /// The switch that a user sees.
  public var isOffline: Bool {
    get { web.isOffline }
    nonmutating set { web.isOffline = newValue }
  }

  /// A page, fresh where the server can be asked.
  /// - Returns: nil where there is nothing to show.
  public func page(_ address: String) async throws -> Page? {
    let answer = try await web.answer(to: HTTPTransportRequest(url: address), limit: 1 << 20)
    guard answer.status == 200 else { return nil }
    let source = answer.headers["cache-status"] ?? ""
    return Page(
      text: String(decoding: answer.body, as: UTF8.self), isStored: source.contains("hit"))
  }

  /// The server has said that it has something new: everything of it is asked about again.
  public func newsArrived(from server: String) async throws {
    try await web.responses.markStale(labels: .all(EntryLabel(server)))
  }
}
