import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Entries that wait for the user", .timeLimit(.minutes(20)))
struct ParkedTests {
  private let peer: SwitchedPeer
  private let store: Store

  init() throws {
    let validator = SyncValidator { change, _ in
      String(decoding: change.content.value, as: UTF8.self).hasPrefix("bad")
        ? SyncRejection(code: "invalid", message: "it is bad") : nil
    }
    peer = try SwitchedPeer(options: SyncHandler.Options(validators: [validator]))
    store = try memoryStore()
  }

  @Test("one bad entry is parked with the reason, the others go; a later put clears it")
  func parks() async throws {
    let replicator = try store.replicator(named: "home", peer: peer)
    for number in 0..<20 { try await store.put("key \(number)", number == 7 ? "bad" : "good") }
    let report = try await replicator.syncOnce()
    #expect(report.applied == 19 && report.parked == 1 && report.isComplete)
    #expect(report.pending.entries == 0 && report.pending.parked == 1)
    let parked = try await replicator.parked()
    #expect(parked.map(\.key) == ["key 7"])
    #expect(parked.first?.rejection == SyncRejection(code: "invalid", message: "it is bad"))
    let sequence = try #require(parked.first?.sequence)
    #expect(
      try await replicator.receipt(forSequence: sequence).outcome()
        == .parked(SyncRejection(code: "invalid", message: "it is bad")))
    #expect(try await replicator.syncOnce().pushed == 0)
    try await store.put("key 7", "good")
    #expect(try await replicator.parked().isEmpty)
    #expect(try await replicator.syncOnce().applied == 1)
    #expect(try peer.text("key 7") == "good")
    #expect(try await store.pending().isEmpty)
  }

  @Test("a change after a parked entry, be it over others, is blocked by it and not complete")
  func blocked() async throws {
    let replicator = try store.replicator(named: "home", peer: peer)
    let refused = try await store.put("photo", "bad").sequences.lowerBound
    #expect(try await replicator.syncOnce().isComplete)
    let note = try await store.put("note", "1", options: PutOptions(after: [refused]))
    try await store.put("index", "1", options: PutOptions(after: [note.sequences.lowerBound]))
    try await store.put("other", "1")
    let report = try await replicator.syncOnce()
    #expect(!report.isComplete && report.lastError == nil && report.applied == 1)
    #expect(report.pending.entries == 2 && report.pending.parked == 1)
    let states = try await store.pendingEntries(for: "home").entries.map(\.state)
    #expect(states.dropFirst() == [.blocked(by: refused), .blocked(by: refused)])
    try await store.put("photo", "good")
    let second = try await replicator.syncOnce()
    #expect(second.isComplete && second.pending.isEmpty)
  }

  @Test("a retry sends the same content as a new entry")
  func retry() async throws {
    let isStrict = Lock(true)
    let peer = try SwitchedPeer(
      options: SyncHandler.Options(validators: [
        SyncValidator { _, _ in
          isStrict.withLock { $0 } ? SyncRejection(code: "x", message: "not now") : nil
        }
      ]))
    let replicator = try store.replicator(named: "home", peer: peer)
    try await store.put("key", "value", labels: ["l"])
    _ = try await replicator.syncOnce()
    let parked = try #require(try await replicator.parked().first)
    isStrict.withLock { $0 = false }
    #expect(try await replicator.syncOnce().pushed == 0)
    let again = try await replicator.retry(parked.sequence)
    #expect(again > parked.sequence)
    #expect(try await store.pending().entries == 1)
    #expect(try await replicator.syncOnce().applied == 1)
    #expect(try peer.text("key") == "value")
    await #expect(throws: TidemarkError.self) { try await replicator.retry(parked.sequence) }
  }

  /// Bytes of the log that a call adds.
  private func grown(_ body: () async throws -> Void) async throws -> Int {
    let before = try store.status.bytes.log
    try await body()
    return try store.status.bytes.log - before
  }

  @Test(
    "many entries go again, or are given up, with a few commits that write down what waits",
    arguments: [true, false])
  func many(retries: Bool) async throws {
    let peer = try SwitchedPeer(
      options: SyncHandler.Options(validators: [
        SyncValidator { _, _ in
          SyncRejection(code: "x", message: String(repeating: "no ", count: 30))
        }
      ]))
    let replicator = try store.replicator(named: "home", peer: peer)
    try await store.write { batch in
      for number in 0..<600 { try batch.put("key\(number)", "value") }
    }
    _ = try await replicator.syncOnce()
    let parked = try await replicator.parked().map(\.sequence)
    #expect(parked.count == 600)
    try await store.put("key7", "another")
    let bytes = try await grown {
      if retries {
        let again = try await replicator.retry(all: parked)
        #expect(again.count == 599 && Set(again).count == 599)
        #expect(again.allSatisfy { $0 > parked[599] })
      } else {
        #expect(try await replicator.discard(all: parked).isEmpty)
      }
    }
    // Each writes what still waits: a commit for every entry would take 50 MB.
    #expect(bytes < 1 << 20, "\(bytes)")
    #expect(try await replicator.parked().isEmpty)
    #expect(try await replicator.pending.entries == (retries ? 600 : 1))
    #expect(try store.text("key7") == "another")
    #expect(try store.text("key8") == (retries ? "value" : nil))
    #expect(try await replicator.retry(all: parked).isEmpty)
  }

  @Test("discarding goes back to what the peer has")
  func discard() async throws {
    let replicator = try store.replicator(named: "home", peer: peer)
    try await store.put("key", "good")
    _ = try await replicator.syncOnce()
    try await store.put("key", "bad")
    try await store.put("new", "bad")
    _ = try await replicator.syncOnce()
    let parked = try await replicator.parked()
    #expect(parked.map(\.key) == ["key", "new"])
    for entry in parked { _ = try await replicator.discard(entry.sequence) }
    #expect(try store.text("key") == "good")
    #expect(try store.text("new") == nil)
    #expect(try await store.pending().isEmpty)
    #expect(try await replicator.syncOnce().pushed == 0)
    try await store.put("key", "better")
    #expect(try await replicator.syncOnce().applied == 1)
    #expect(try peer.text("key") == "better")
  }

  @Test("a parked change survives a restart of the program")
  func restart() async throws {
    let disk = MemoryFileSystem()
    let configuration = Store.Configuration(environment: Store.Environment(fileSystem: disk))
    let first = try await Store.open(at: "store", configuration: configuration)
    try await first.put("key", "bad")
    _ = try await first.replicator(named: "home", peer: peer).syncOnce()
    try await first.close()
    let second = try await Store.open(at: "store", configuration: configuration)
    #expect(try second.blocking.parked().map(\.key) == ["key"])
    _ = try second.blocking.discardParked(all: [1])
    #expect(try second.text("key") == nil)
    try await second.close()
  }

  @Test("the user decides, with both sides before them", arguments: [0, 1, 2, 3])
  func decide(choice: Int) async throws {
    let other = try memoryStore()
    let replicator = try store.replicator(named: "home", peer: peer, resolver: .ask)
    let second = try other.replicator(named: "home", peer: peer)
    try await store.put("key", "base")
    _ = try await replicator.syncOnce()
    _ = try await second.syncOnce()
    try await other.put("key", "theirs")
    _ = try await second.syncOnce()
    try await store.put("key", "mine")
    let report = try await replicator.syncOnce()
    #expect(report.pending.needsDecision == 1 && report.pending.entries == 0)
    let conflict = try #require(try await replicator.conflicts().first)
    #expect(conflict.local?.value == Array("mine".utf8))
    #expect(conflict.remote?.value == Array("theirs".utf8))
    #expect(conflict.base?.value == Array("base".utf8))
    let (decision, expected): (ConflictResolution, String) =
      switch choice {
      case 0: (.local, "mine")
      case 1: (.remote, "theirs")
      case 2: (.merged(SyncContent(value: Array("both".utf8))), "both")
      default: (.both(localKey: "copy"), "theirs")
      }
    try await replicator.decide("key", decision)
    #expect(try await replicator.conflicts().isEmpty)
    _ = try await replicator.syncOnce()
    _ = try await second.syncOnce()
    for store in [store, other] {
      #expect(try store.text("key") == expected)
      #expect(try store.text("copy") == (choice == 3 ? "mine" : nil))
    }
    #expect(try peer.text("key") == expected)
  }

  @Test("a peer that is forgotten leaves everything pending and all data in place")
  func forget() async throws {
    var replicator: Replicator? = try store.replicator(named: "home", peer: peer)
    try await store.put("key", "value")
    _ = try await replicator?.syncOnce()
    let info = try #require(try await store.peers().first)
    #expect(info.name == "home" && info.pending.isEmpty && info.isLive)
    #expect(info.lastSuccess != nil && info.leaseEnds != nil)
    await #expect(throws: TidemarkError.self) { try await store.forget(peer: "home") }
    replicator = nil
    try await store.forget(peer: "home")
    #expect(try await store.peers().isEmpty)
    #expect(try await store.pending().entries == 1)
    await #expect(throws: TidemarkError.self) { try await store.forget(peer: "home") }
    let report = try await store.replicator(named: "home", peer: peer).syncOnce()
    #expect(report.isComplete && report.pending.isEmpty)
    #expect(try store.text("key") == "value")
  }

  @Test("a peer that is forgotten leaves no record, be a conflict open and a batch under way")
  func forgetAll() async throws {
    let other = try memoryStore()
    let second = try other.replicator(named: "home", peer: peer)
    var replicator: Replicator? = try store.replicator(named: "home", peer: peer, resolver: .ask)
    try await store.put("key", "base")
    _ = try await replicator?.syncOnce()
    _ = try await second.syncOnce()
    try await other.put("key", "theirs")
    _ = try await second.syncOnce()
    try await store.put("key", "mine")
    #expect(try await replicator?.syncOnce().pending.needsDecision == 1)
    try await store.put("new", "mine")
    peer.set { $0.losesAnswers = true }
    #expect(await code { try await replicator?.syncOnce() } == .peerFailed)
    replicator = nil
    let types: [RecordType] = [
      .peerProgress, .peerSettled, .peerStatus, .peerWaiting, .remoteState, .pin,
    ]
    let before = try RecordTable(store.engine.reader)
    // Few positions go with the progress.
    for type in types where type != .peerSettled {
      #expect(!before.keys(of: type).isEmpty, "\(type)")
    }
    try await store.forget(peer: "home")
    let after = try RecordTable(store.engine.reader)
    for type in types { #expect(after.keys(of: type).isEmpty, "\(type)") }
    #expect(try store.text("key") == "mine")
    #expect(try await store.pending().entries == 2)
  }
}
