public import Tidemark
internal import TidemarkFoundation

/// Messages whose ids only grow, fetched in intervals of ids that never move.
///
/// "The newest 20" begin at another id each time, so that pages of them would overlap. Cut at
/// multiples of 20, they are two intervals at most, and an interval is fetched once when all of its
/// ids have been given out.
public struct MessageList: Sendable {
  public struct Message: Codable, Sendable, Equatable {
    public var id: Int
    public var text: String

    public init(id: Int, text: String) {
      self.id = id
      self.text = text
    }
  }

  private static let size = 20
  private let intervals: Cache<[Message]>
  private let fetch: @Sendable (Range<Int>) async throws -> [Message]

  /// - Parameter fetch: asks the server for the messages of a range of ids; some may be gone.
  public init(
    _ store: Store, fetch: @escaping @Sendable (Range<Int>) async throws -> [Message]
  ) throws {
    intervals = try store.cache(of: [Message].self, prefix: "messages/", policy: .manifest)
    self.fetch = fetch
  }

  /// The newest messages up to an id, the newest first.
  /// - Parameter newest: the highest id that was given out. The interval that holds it is not
  ///   complete yet: it is asked for each time, and serves where the server is away.
  public func messages(_ count: Int, through last: Int, newest: Int) async throws -> [Message] {
    var found: [Message] = []
    var start = last / Self.size * Self.size
    while found.count < count, start >= 0 {
      let ids = start..<(start + Self.size)
      let maxAge: Duration? = ids.upperBound <= newest + 1 ? nil : .zero
      let items = try await intervals.value(for: "\(start)", policy: .cacheFirst, maxAge: maxAge) {
        try await fetch(ids)
      }
      found += (items ?? []).filter { $0.id <= last }.sorted { $0.id > $1.id }
      start -= Self.size
    }
    return Array(found.prefix(count))
  }
}
