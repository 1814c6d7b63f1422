public import TidemarkEngine

/// Reads one generation of a ``PagedList`` to its end, whether or not a newer one has begun.
public final class PageReader<Page: Sendable>: Sendable {
  private struct State {
    /// The store as it was when the generation was the newest one for the last time.
    var view: StoreView
    /// Pages that came when the generation was void already.
    var late: [Int: Page] = [:]
    var pages = 0
  }

  private let list: PagedList<Page>
  /// The number of the generation; later ones have higher numbers.
  public let generation: UInt64
  private let state: Lock<State>

  init(_ list: PagedList<Page>, _ generation: UInt64) throws(TidemarkError) {
    self.list = list
    self.generation = generation
    let view = try list.cache.store.view()
    var state = State(view: view)
    while try view.contains(list.cache.full(list.key(generation, state.pages))) {
      state.pages += 1
    }
    self.state = Lock(state)
  }

  /// How many pages there are in a row, from the first on: the number of the page to ask for next.
  public var pages: Int { state.withLock { $0.pages } }

  /// Whether no newer generation has begun.
  public var isNewest: Bool {
    get throws(TidemarkError) { try list.newest() == generation }
  }

  /// A page.
  /// - Parameter number: its number, from 0.
  /// - Returns: nil for one that has not come, or has made room.
  /// - Throws: what ``Cache/value(forKey:)`` throws.
  public func page(_ number: Int) throws(TidemarkError) -> Page? {
    guard (0...Int(UInt32.max)).contains(number) else { return nil }
    let key = list.key(generation, number)
    if let page = try list.cache.value(forKey: key) { return page }
    let (view, late) = state.withLock { ($0.view, $0.late[number]) }
    if let late { return late }
    guard let bytes = try view.value(forKey: list.cache.full(key)) else { return nil }
    return try list.cache.decode(bytes)
  }

  /// Adds the next page of the generation.
  ///
  /// In a generation that is void by now only this reader has it.
  /// - Parameters:
  ///   - page: the page.
  ///   - maxAge: for how long it is valid; nil for the cache's policy.
  /// - Returns: whether it is kept in the store.
  /// - Throws: what ``Cache/put(_:_:labels:hash:maxAge:attachment:durability:)`` throws.
  @discardableResult
  public func put(_ page: Page, maxAge: Duration? = nil) async throws(TidemarkError) -> Bool {
    let number = pages
    guard number <= Int(UInt32.max) else {
      throw TidemarkError(.limitExceeded, "a list of more than 4294967296 pages")
    }
    guard try isNewest else {
      state.withLock { state in
        state.late[number] = page
        state.pages = max(state.pages, number + 1)
      }
      return false
    }
    try await list.cache.put(list.key(generation, number), page, maxAge: maxAge)
    let view = try list.cache.store.view()
    // Where a newer one has begun meanwhile, the older view is the one that shows the pages.
    let isNewest = try isNewest
    state.withLock { state in
      if isNewest { state.view = view } else { state.late[number] = page }
      state.pages = max(state.pages, number + 1)
    }
    return isNewest
  }
}
