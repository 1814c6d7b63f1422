public import Tidemark
internal import TidemarkFoundation

/// Articles that were read in memory (NSCache) and kept in a table with a column for their section
/// (Core Data): here both are one cache.
///
/// Memory is the store's hot cache, bounded by `Store.Configuration.cacheBytes`; sections are
/// labels.
public struct ArticleShelf: Sendable {
  /// An article of the server's.
  public struct Article: Codable, Sendable, Equatable {
    public var title: String
    public var text: String

    public init(title: String, text: String) {
      self.title = title
      self.text = text
    }
  }

  private let articles: Cache<Article>

  public init(_ store: Store) throws {
    articles = try store.cache(
      of: Article.self, prefix: "articles/", policy: CachePolicy(maxAge: .seconds(300)))
  }

  /// Keeps an article that the server has sent.
  public func keep(_ article: Article, id: Int, section: String) async throws {
    try await articles.put("\(id)", article, labels: [EntryLabel(section)])
  }

  /// An article, also without a network, and whether it is still fresh.
  public func article(_ id: Int) throws -> (article: Article, isFresh: Bool)? {
    try articles.entry(forKey: "\(id)").map { ($0.value, $0.isValid) }
  }

  /// The titles of a section.
  public func titles(inSection section: String) throws -> [String] {
    try articles.entries(labels: LabelFilter(all: [EntryLabel(section)])).map(\.value.title)
  }

  /// The section has changed at the server: what is kept of it is fetched anew before it counts.
  public func sectionChanged(_ section: String) async throws {
    try await articles.markStale(labels: LabelFilter(all: [EntryLabel(section)]))
  }
}
