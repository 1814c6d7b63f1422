import Tidemark
import TidemarkEngine
import TidemarkTestKit
import Testing

@Suite("Events of a store")
struct StoreEventTests {
  private let disk = SimulatedFileSystem()
  private let log = EventLog()

  private func configuration() -> Store.Configuration {
    var configuration = Store.Configuration(
      environment: EngineEnvironment(fileSystem: disk), usesThreads: false)
    configuration.onEvent = { [log] in log.add($0) }
    return configuration
  }

  @Test("opening, sealing, a checkpoint and a compaction are told with entries and bytes")
  func lifecycle() throws {
    let store = try Store.openBlocking(at: "/s", configuration: configuration())
    for round in 0..<4 {
      for key in 0..<100 { try store.blocking.put("k\(key)", "value \(round) of \(key)") }
    }
    try store.blocking.snapshot()
    try store.blocking.compact(dropHistory: true)
    try store.blocking.close()
    #expect(log.kinds.first == .opened)
    #expect(Set(log.kinds).isSuperset(of: [.opened, .sealed, .checkpointed, .compacted]))
    #expect(!log.kinds.contains(.recovered) && !log.kinds.contains(.failed))
    let compacted = try #require(log.first(.compacted))
    #expect(compacted.entries == 300 && compacted.bytes > 0 && compacted.store == "/s")
    #expect(try #require(log.first(.sealed)).entries == 400)
    #expect(try #require(log.first(.checkpointed)).bytes > 0)
  }

  @Test("an opening after a kill tells how much of the log it has recovered")
  func recovered() throws {
    let store = try Store.openBlocking(at: "/s", configuration: configuration())
    for key in 0..<10 { try store.blocking.put("k\(key)", "v", durability: .durable) }
    disk.powerCut()
    disk.restart()
    let again = try Store.openBlocking(at: "/s", configuration: configuration())
    let recovered = try #require(log.first(.recovered))
    #expect(recovered.entries == 10 && recovered.bytes > 0)
    #expect(log.kinds.filter { $0 == .opened }.count == 2)
    try again.blocking.close()
    _ = store
  }

  @Test("entries that a bounded cache gives up are told")
  func evicted() throws {
    let store = try Store.openBlocking(at: "/s", configuration: configuration())
    let cache = try store.cache(prefix: "c/", policy: CachePolicy(capacity: 5))
    for key in 0..<20 { try cache.blocking.put("k\(key)", [1, 2, 3]) }
    let evicted = log.all(.evicted)
    #expect(evicted.reduce(0) { $0 + $1.entries } == 15)
    #expect(evicted.allSatisfy { $0.bytes > 0 })
    try store.blocking.close()
  }
}

/// The events that a store has told.
private final class EventLog: Sendable {
  private let events = Lock<[StoreEvent]>([])

  func add(_ event: StoreEvent) { events.withLock { $0.append(event) } }
  var kinds: [StoreEvent.Kind] { events.withLock { $0.map(\.kind) } }
  func all(_ kind: StoreEvent.Kind) -> [StoreEvent] {
    events.withLock { $0.filter { $0.kind == kind } }
  }
  func first(_ kind: StoreEvent.Kind) -> StoreEvent? { all(kind).first }
}
