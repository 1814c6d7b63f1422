public import Tidemark
internal import TidemarkFoundation

/// A list that a server gives in pages and may change anywhere, kept for work without a network.
///
/// A refresh begins a new *generation*. The key of a page holds its generation's number, so that
/// whoever pages on never sees a page of another one. The last two generations are kept.
public struct PagedResults: Sendable {
  /// A page of the list, and what the server is asked with for the next one; nil on the last page.
  public struct Page: Codable, Sendable, Equatable {
    public var titles: [String]
    public var cursor: String?

    public init(titles: [String], cursor: String?) {
      self.titles = titles
      self.cursor = cursor
    }
  }

  private let pages: Cache<Page>
  private let fetch: @Sendable (_ cursor: String?) async throws -> Page

  /// - Parameters:
  ///   - name: the list's; lists with other names do not meet.
  ///   - fetch: asks the server for the page that a cursor leads to; nil for the first one.
  public init(
    _ store: Store, name: String,
    fetch: @escaping @Sendable (_ cursor: String?) async throws -> Page
  ) throws {
    pages = try store.cache(of: Page.self, prefix: "lists/\(name)/", policy: .manifest)
    self.fetch = fetch
  }

  /// Fetches the first page anew.
  /// - Returns: the generation that begins with it. The log numbers it: its number is above that of
  ///   any generation before, also after a crash.
  public func refresh() async throws -> UInt64 {
    let first = try await fetch(nil)
    let (generation, before) = (pages.store.lastSequence, try newest())
    try await pages.put(Self.key(generation, 0), first)
    let oldest = Self.key(before ?? generation, 0)
    try await pages.remove(keys: try keys().filter { $0 < oldest })
    return generation
  }

  /// The newest generation that is kept; nil where the list was never fetched.
  public func newest() throws -> UInt64? {
    try keys().last.flatMap { UInt64($0.text.prefix(16), radix: 16) }
  }

  /// A page of a generation, from the cache or else from the server.
  /// - Returns: nil behind the last page, and for a generation that is no longer kept.
  public func page(_ number: Int, of generation: UInt64) async throws -> Page? {
    if let page = try pages.value(forKey: Self.key(generation, number)) { return page }
    guard number > 0, let before = try pages.value(forKey: Self.key(generation, number - 1)),
      let cursor = before.cursor
    else { return nil }
    return try await pages.value(for: Self.key(generation, number)) { try await fetch(cursor) }
  }

  /// The keys of all pages, without the cache's prefix; the newest generation is the last.
  private func keys() throws -> [Key] { try pages.entries().map(\.key) }

  /// All numbers have as many digits, so that keys are in the order of numbers.
  private static func key(_ generation: UInt64, _ page: Int) -> Key {
    let numbers = [generation, UInt64(page)].map { number in
      let digits = String(number, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }
    return Key(numbers.joined(separator: "/"))
  }
}
