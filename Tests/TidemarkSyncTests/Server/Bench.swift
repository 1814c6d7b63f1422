import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

/// A handler on a simulated disk; if wished it is closed and opened again before every call.
final class Bench {
  let disk: SimulatedFileSystem
  let clock: ManualClock
  var options: SyncHandler.Options
  let restarts: Bool
  private var openings: UInt64 = 0
  private var open: SyncHandler?

  init(
    restarts: Bool = false, disk: SimulatedFileSystem = SimulatedFileSystem(seed: 1),
    clock: ManualClock = ManualClock(), options: SyncHandler.Options = SyncHandler.Options(),
    openings: UInt64 = 0
  ) {
    self.restarts = restarts
    self.disk = disk
    self.clock = clock
    self.options = options
    self.openings = openings
  }

  func configuration(retention: Retention? = nil) -> Store.Configuration {
    openings += 1
    return Store.Configuration(
      retention: retention,
      environment: Store.Environment(
        fileSystem: disk, clock: clock, random: SeededRandom(seed: 100 + openings)),
      usesThreads: false)
  }

  /// The handler, opened anew if it is to be.
  func handler() throws -> SyncHandler {
    if restarts { try close() }
    if let open { return open }
    let handler = try SyncHandler(at: "feed", configuration: configuration(), options: options)
    open = handler
    return handler
  }

  /// The feed of the handler.
  func feed() throws -> StoreFeed { try #require(try handler().feed as? StoreFeed) }

  /// A look at the feed.
  func look(at replica: ReplicaID? = nil) throws -> FeedView {
    try handler().feed.look(FeedQuestion(of: replica))
  }

  /// Opens the handler anew, with a configuration of its own.
  func use(_ configuration: Store.Configuration) throws {
    try close()
    open = try SyncHandler(at: "feed", configuration: configuration, options: options)
  }

  func close() throws {
    try open?.close()
    open = nil
  }

  /// Lets go of the handler as a crash does.
  func abandon() { open = nil }

  /// Works on the store itself while no handler has it.
  @discardableResult
  func withEngine<R>(_ body: (Engine) throws -> R) throws -> R {
    try close()
    let store = try Store.openBlocking(at: "feed", configuration: configuration())
    let result = try body(store.engine)
    try store.blocking.close()
    return result
  }

  /// Pushes a device's next batch.
  func push(
    _ device: inout Device, _ changes: PushedChange..., access: SyncAccess = .everything
  ) throws -> [PushVerdict] {
    try push(&device, all: changes, access: access)
  }

  func push(
    _ device: inout Device, all changes: [PushedChange], access: SyncAccess = .everything
  ) throws -> [PushVerdict] {
    if device.number == 0 { _ = try handler().hello(HelloRequest(replica: device.id)) }
    device.number += 1
    let answer = try handler().push(device.batch(changes), access: access)
    #expect(answer.mark.number == device.number)
    #expect(answer.mark.verdicts.count == changes.count)
    return answer.mark.verdicts
  }

  /// Everything that a device is given from a position on.
  func pullAll(
    _ device: Device, after: FeedPosition = .beginning, scope: SyncScope = .everything,
    access: SyncAccess = .everything, limits: SyncLimits = SyncLimits(),
    everyVersion: Bool = false
  ) throws -> (entries: [FeedEntry], pages: Int, cursor: FeedPosition) {
    var entries: [FeedEntry] = []
    var cursor = after
    var pages = 0
    while true {
      let answer = try handler().pull(
        PullRequest(
          replica: device.id, after: cursor, scope: scope, limits: limits,
          everyVersion: everyVersion),
        access: access)
      pages += 1
      entries += answer.entries
      cursor = answer.cursor
      if cursor == answer.range.headPosition { return (entries, pages, cursor) }
      guard pages < 1000 else {
        Issue.record("the pages do not end")
        return (entries, pages, cursor)
      }
    }
  }

  func value(_ key: String) throws -> String? {
    let answer = try handler().values(
      ValuesRequest(replica: Device(99).id, keys: [Array(key.utf8)]))
    return answer.entries.first.flatMap {
      $0.kind == .put ? String(decoding: $0.content.value, as: UTF8.self) : nil
    }
  }
}

/// Somebody who writes.
struct Device {
  let id: ReplicaID
  var number: UInt64 = 0
  var sequence: UInt64 = 0

  init(_ name: UInt8) { id = ReplicaID(padding: Array(repeating: name, count: 16)) }

  func batch(_ changes: [PushedChange]) -> PushRequest {
    PushRequest(
      replica: id, number: number, batchID: BatchID(number &* 1000 + UInt64(id.bytes[0])),
      changes: changes)
  }

  mutating func put(
    _ key: String, _ value: String, labels: [EntryLabel] = [], base: ChangeBase = .absent,
    at seconds: UInt64 = 0, group: UInt64 = 0
  ) -> PushedChange {
    sequence += 1
    return PushedChange(
      sequence: sequence, kind: .put, key: Array(key.utf8),
      content: SyncContent(value: Array(value.utf8), labels: labels), base: base,
      commitTime: Self.time(seconds), atomicGroup: group)
  }

  mutating func delete(
    _ key: String, base: ChangeBase, at seconds: UInt64 = 0, group: UInt64 = 0
  ) -> PushedChange {
    sequence += 1
    return PushedChange(
      sequence: sequence, kind: .delete, key: Array(key.utf8), base: base,
      commitTime: Self.time(seconds), atomicGroup: group)
  }

  /// A commit time some seconds before the bench's clock begins.
  static func time(_ seconds: UInt64) -> UInt64 { (1_767_225_000 + seconds) * 1000 << 16 }
}

extension PushVerdict {
  /// Where it says that something stands.
  var place: FeedPosition? {
    switch self {
    case .applied(let place), .duplicate(let place), .conflict(let place), .lost(let place): place
    case .rejected, .aborted: nil
    }
  }

  var name: String {
    switch self {
    case .applied: "applied"
    case .duplicate: "duplicate"
    case .conflict: "conflict"
    case .lost: "lost"
    case .rejected(let rejection): rejection.code
    case .aborted: "aborted"
    }
  }
}

/// The kind of failure that a call ends with; nil when it does not.
func failure(_ body: () throws -> Void) -> PeerError.Kind? {
  do { try body() } catch { return (error as? PeerError)?.kind ?? .failed }
  return nil
}
