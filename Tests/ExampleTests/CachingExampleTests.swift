import CachingExamples
import Testing
import Tidemark
import TidemarkEngine
import TidemarkHTTP
import TidemarkSyncServer
import TidemarkTestKit

/// Runs the pages under `Tools/Examples/caching`, which the article "Caching a server's data" shows
/// as what replaces what a program has today.
@Suite("Examples of caching", .timeLimit(.minutes(20)))
struct CachingExampleTests {
  private func open() async throws -> Store { try await Store.open(at: .inMemory) }

  @Test("a shelf of articles lists a section and knows what is fresh")
  func shelf() async throws {
    let store = try await open()
    let shelf = try ArticleShelf(store)
    let article = ArticleShelf.Article(title: "Dunes", text: "Sand")
    try await shelf.keep(article, id: 1, section: "nature")
    try await shelf.keep(ArticleShelf.Article(title: "Goal", text: ""), id: 2, section: "sport")
    #expect(try shelf.article(1)?.article == article && shelf.article(1)?.isFresh == true)
    #expect(try shelf.article(3) == nil)
    #expect(try shelf.titles(inSection: "sport") == ["Goal"])
    try await shelf.sectionChanged("nature")
    #expect(try shelf.article(1)?.isFresh == false && shelf.article(2)?.isFresh == true)
    try await store.close()
  }

  @Test("a cache of pictures asks once for what many want, and serves while the server is away")
  func pictures() async throws {
    struct Away: Error {}
    let store = try await open()
    let asked = Lock(0)
    let cache = try PictureCache(store) { name, _ in
      asked.withLock { $0 += 1 }
      guard name != "away" else { throw Away() }
      return (Array("<\(name)>".utf8), [1])
    }
    try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
      for _ in 0..<20 { group.addTask { try await cache.picture("cat") } }
      for try await picture in group { #expect(picture == Array("<cat>".utf8)) }
    }
    #expect(asked.withLock { $0 } == 1 && cache.requestsAvoided >= 19)
    await #expect(throws: (any Error).self) { try await cache.picture("away") }
    try await store.close()
  }

  @Test("a note book knows what its server has not heard of, deletes among it")
  func notes() async throws {
    let (store, served) = (try await open(), try await open())
    let book = try NoteBook(store, server: StorePeer(served))
    try await book.save("milk", id: 1)
    try await book.save("call", id: 2)
    #expect(try await book.unsynced() == 2)
    try await book.sync()
    #expect(try await book.unsynced() == 0)
    try await book.delete(1)
    #expect(try book.texts() == ["call"])
    #expect(try await book.unsynced() == 1)
    try await book.sync()
    #expect(try served.value(forKey: "note/1") == nil && served.text(forKey: "note/2") == "call")
    try await store.close()
    try await served.close()
  }

  private struct Lines: Timetable.Server {
    var stops: [String: String]

    func version() async throws -> [UInt8] {
      let all = "\(stops.sorted { $0.key < $1.key })"
      return SHA256.hash(Array(all.utf8).rawSpan)
    }

    func index() async throws -> [(line: String, hash: [UInt8])] {
      stops.map { ($0.key, SHA256.hash(Array($0.value.utf8).rawSpan)) }
    }
    func stops(of line: String) async throws -> [UInt8] { Array((stops[line] ?? "").utf8) }
  }

  @Test("a timetable fetches what has changed and drops what is gone, in one step")
  func timetable() async throws {
    let store = try await open()
    let timetable = try Timetable(store)
    let first = Lines(stops: ["1": "A B", "2": "C", "3": "D"])
    #expect(try await timetable.update(from: first) == (3, 0))
    #expect(try await timetable.update(from: first) == (0, 0))
    let second = Lines(stops: ["1": "A B", "2": "C E"])
    #expect(try await timetable.update(from: second) == (1, 1))
    #expect(try timetable.stops(of: "2") == "C E" && timetable.stops(of: "3") == nil)
    try await store.close()
  }

  @Test("pages of one generation are never mixed with another's, and are there without a server")
  func pages() async throws {
    struct Away: Error {}
    let store = try await open()
    let server = Lock<(pages: [[String]], isReachable: Bool)>(([["a"], ["b"], ["c"]], true))
    let results = try PagedResults(store, name: "tides") { cursor in
      let (pages, isReachable) = server.withLock { $0 }
      guard isReachable else { throw Away() }
      let number = cursor.flatMap { Int($0) } ?? 0
      return PagedResults.Page(
        titles: pages[number], cursor: number + 1 < pages.count ? "\(number + 1)" : nil)
    }
    #expect(try results.newest() == nil)
    let first = try await results.refresh()
    #expect(try await results.page(1, of: first)?.titles == ["b"])
    server.withLock { $0.pages = [["A"], ["B"]] }
    let second = try await results.refresh()
    #expect(try second > first && results.newest() == second)
    server.withLock { $0.isReachable = false }
    #expect(try await results.page(0, of: first)?.titles == ["a"])
    #expect(try await results.page(1, of: first)?.titles == ["b"])
    #expect(try await results.page(0, of: second)?.titles == ["A"])
    await #expect(throws: Away.self) { try await results.page(1, of: second) }
    server.withLock { $0.isReachable = true }
    #expect(try await results.page(1, of: second)?.titles == ["B"])
    #expect(try await results.page(2, of: second) == nil)
    let third = try await results.refresh()
    #expect(try await results.page(0, of: first) == nil)
    #expect(try await results.page(0, of: second) != nil && results.newest() == third)
    try await store.close()
  }

  @Test("intervals of messages that are complete are fetched once, an open one serves while away")
  func messages() async throws {
    struct Away: Error {}
    let store = try await open()
    let server = Lock<(ids: [Int], asked: [Range<Int>], isReachable: Bool)>(
      (Array(0...57), [], true))
    let list = try MessageList(store) { ids in
      try server.withLock { server in
        server.asked.append(ids)
        guard server.isReachable else { throw Away() }
        return server.ids.filter { ids.contains($0) }.map { MessageList.Message(id: $0, text: "") }
      }
    }
    var page = try await list.messages(20, through: 57, newest: 57).map(\.id)
    #expect(page == Array((38...57).reversed()))
    page = try await list.messages(20, through: 37, newest: 57).map(\.id)
    #expect(page == Array((18...37).reversed()))
    #expect(server.withLock { $0.asked } == [40..<60, 20..<40, 0..<20])
    server.withLock { $0.ids += [58, 59] }
    page = try await list.messages(60, through: 59, newest: 59).map(\.id)
    #expect(page == Array((0...59).reversed()))
    #expect(server.withLock { $0.asked } == [40..<60, 20..<40, 0..<20, 40..<60])
    // The interval is complete by now, and holes are paged over.
    server.withLock { $0.ids = [63] }
    page = try await list.messages(2, through: 63, newest: 63).map(\.id)
    #expect(page == [63, 59])
    server.withLock { $0.isReachable = false }
    page = try await list.messages(2, through: 63, newest: 63).map(\.id)
    #expect(page == [63, 59] && server.withLock { $0.asked.count } == 6)
    try await store.close()
  }

  /// A server that counts what it is asked, until it cannot be reached.
  private final class News: HTTPTransport {
    let state = Lock((asked: 0, isReachable: true))

    func stream(
      _ request: HTTPTransportRequest,
      head: @escaping @Sendable (HTTPTransportAnswer) throws -> Void,
      body: @escaping @Sendable ([UInt8]) throws -> Void
    ) async throws {
      let isReachable = state.withLock { state in
        state.asked += 1
        return state.isReachable
      }
      guard isReachable else { throw PeerError(.unavailable, "nobody answers") }
      let age = request.url.hasSuffix("live") ? 0 : 60
      try head(
        HTTPTransportAnswer(
          status: 200, headers: ["cache-control": "max-age=\(age)", "content-length": "5"]))
      try body(Array("dunes".utf8))
    }

    func close() async {}
  }

  @Test("a reader of pages reads what it has seen without a network, and says when it has nothing")
  func offline() async throws {
    let store = try await open()
    let news = News()
    let reader = try OfflineReader(store, transport: news)
    for _ in 0..<3 {
      let page = try await reader.page("http://news.example/today")
      #expect(page?.text == "dunes")
      #expect(news.state.withLock { $0.asked } == 1)
    }
    reader.isOffline = true
    #expect(try await reader.page("http://news.example/today")?.text == "dunes")
    #expect(try await reader.page("http://news.example/unread") == nil)
    #expect(news.state.withLock { $0.asked } == 1)
    try await reader.newsArrived(from: "news.example")
    reader.isOffline = false
    #expect(try await reader.page("http://news.example/today")?.text == "dunes")
    #expect(try await reader.page("http://news.example/live")?.isStored == false)
    #expect(news.state.withLock { $0.asked } == 3)
    news.state.withLock { $0.isReachable = false }
    #expect(try await reader.page("http://news.example/live")?.isStored == true)
    #expect(news.state.withLock { $0.asked } == 4)
    try await store.close()
  }
}
