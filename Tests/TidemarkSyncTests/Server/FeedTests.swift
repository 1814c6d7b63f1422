import Testing
import Tidemark
import TidemarkEngine
import TidemarkSyncTestKit
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Feeds, and several handlers over one of them")
struct FeedTests {
  enum Kind {
    case store, memory, postgres

    /// Those that are there: PostgreSQL where a server was started for tests.
    static let all: [Kind] = [.store, .memory] + (PostgresTrial.url == nil ? [] : [.postgres])
  }

  private func feed(_ kind: Kind) throws -> any Feed & FeedUpkeep {
    switch kind {
    case .postgres: try PostgresTrial.feeds()[0]
    case .store: try StoreFeed(at: "feed", configuration: Bench().configuration())
    case .memory:
      try MemoryFeed(MemoryFeedLog(id: Device(77).id), epoch: 5, clock: ManualClock())
    }
  }

  private func handlers(
    _ feed: any Feed & FeedUpkeep, _ options: SyncHandler.Options = SyncHandler.Options()
  ) throws -> (SyncHandler, SyncHandler) {
    (try SyncHandler(feed: feed, options: options), try SyncHandler(feed: feed, options: options))
  }

  private func push(
    _ device: inout Device, _ changes: PushedChange..., to handler: SyncHandler
  ) throws -> PushAnswer {
    if device.number == 0 { _ = try handler.hello(HelloRequest(replica: device.id)) }
    device.number += 1
    return try handler.push(device.batch(changes))
  }

  @Test("a batch counts once, whichever handler it is sent to", arguments: Kind.all)
  func once(kind: Kind) throws {
    let (one, other) = try handlers(try feed(kind))
    var a = Device(1)
    let first = try push(&a, a.put("k", "1"), to: one)
    let batch = a.batch([a.put("k", "again")])
    #expect(try other.push(batch).mark == first.mark)
    let second = try push(&a, a.put("k", "2", base: .operation(sequence: 1)), to: other)
    #expect(second.mark.number == 2 && second.mark.verdicts.map(\.name) == ["applied"])
    let page = try one.pull(
      PullRequest(replica: Device(9).id, after: .beginning, everyVersion: true))
    #expect(page.entries.map { String(decoding: $0.content.value, as: UTF8.self) } == ["1", "2"])
  }

  @Test(
    "a handler goes by the leases and policies that another one was told", arguments: Kind.all)
  func shared(kind: Kind) throws {
    let (one, other) = try handlers(try feed(kind))
    var (a, b) = (Device(1), Device(2))
    // Its hello was at the other one.
    _ = try push(&a, a.put("k", "1", at: 10), to: one)
    #expect(try push(&a, a.put("l", "1"), to: other).mark.number == 2)
    try one.forget(a.id)
    a.number += 1
    let next = a.batch([a.put("m", "1")])
    #expect(failure { _ = try other.push(next) } == .leaseExpired)
    try one.setPolicy(.lastWriterWins, forKeysWithPrefix: "")
    #expect(other.policies == one.policies && other.policies.count == 1)
    #expect(
      try push(&b, b.put("k", "2", at: 20), to: other).mark.verdicts.map(\.name) == ["applied"])
  }

  @Test("a batch that was judged before another one came is judged anew", arguments: Kind.all)
  func rival(kind: Kind) throws {
    let feed = RivalFeed(try feed(kind))
    let (one, other) = try handlers(feed)
    var (a, b) = (Device(1), Device(2))
    _ = try push(&b, b.put("else", "1"), to: other)
    _ = try one.hello(HelloRequest(replica: a.id))
    feed.beforeNextAppend { _ = try? push(&b, b.put("k", "theirs"), to: other) }
    let answer = try push(&a, a.put("k", "mine"), to: one)
    #expect(answer.mark.verdicts.map(\.name) == ["conflict"])
    // A policy that is set meanwhile counts as well.
    feed.beforeNextAppend {
      try? other.setPolicy(.lastWriterWins, forKeysWithPrefix: "")
    }
    let later = try push(&a, a.put("k", "mine", at: 90), to: one)
    #expect(later.mark.verdicts.map(\.name) == ["applied"])
  }

  @Test(
    "the feed takes one of two batches with the same number that are judged at a time",
    arguments: Kind.all)
  func sameNumber(kind: Kind) throws {
    let feed = RivalFeed(try feed(kind))
    let (one, other) = try handlers(feed)
    var a = Device(1)
    _ = try push(&a, a.put("k", "1"), to: one)
    a.number += 1
    let batch = a.batch([a.put("k", "2", base: .operation(sequence: 1))])
    feed.beforeNextAppend { _ = try? other.push(batch) }
    #expect(try one.push(batch).mark.verdicts.map(\.name) == ["applied"])
    let page = try one.pull(
      PullRequest(replica: Device(9).id, after: .beginning, everyVersion: true))
    #expect(page.entries.count == 2)
  }

  @Test("a sync that fails fails every answer of both handlers that depended on it")
  func failingSync() throws {
    let fails = Lock(false)
    var medium = MemoryFeed.Medium()
    medium.sync = { () throws(TidemarkError) in
      if fails.withLock({ $0 }) { throw TidemarkError(.inputOutput, "no") }
    }
    let feed = try MemoryFeed(
      MemoryFeedLog(id: Device(77).id), epoch: 5, clock: ManualClock(), medium: medium)
    let (one, other) = try handlers(feed)
    var (a, b) = (Device(1), Device(2))
    _ = try push(&a, a.put("k", "1"), to: one)
    _ = try push(&b, b.put("l", "1"), to: other)
    a.number += 1
    b.number += 1
    let staged = [
      (one, try one.stage(.pushRequest(a.batch([a.put("m", "1")])))),
      (other, try other.stage(.pushRequest(b.batch([b.put("n", "1")])))),
      (other, try other.stage(.pullRequest(PullRequest(replica: Device(9).id, after: .beginning)))),
    ]
    fails.withLock { $0 = true }
    for (handler, answer) in staged {
      #expect(failure { try handler.settle(answer) } == .unavailable)
    }
    fails.withLock { $0 = false }
    #expect(failure { try staged[0].0.settle(staged[0].1) } == .unavailable)
  }

  // MARK: A primary that changes beneath a handler

  /// A feed in memory over which a handler lives on while its last entries are lost.
  private struct Failover {
    let feed: RivalFeed
    let handler: SyncHandler
    private let copy: MemoryFeedLog
    var (a, b) = (Device(1), Device(2))
    let known: FeedPosition

    init(_ device: inout Device) throws {
      let memory = try MemoryFeed(
        MemoryFeedLog(id: Device(77).id), epoch: 5, clock: ManualClock())
      feed = RivalFeed(memory)
      handler = try SyncHandler(feed: feed, options: SyncHandler.Options(lease: nil))
      for id in [a.id, b.id] { _ = try handler.hello(HelloRequest(replica: id)) }
      device.number += 1
      _ = try handler.push(device.batch([device.put("k", "1")]))
      copy = memory.log
      b.number += 1
      known = try handler.push(b.batch([b.put("lost", "1")])).range.headPosition
      a = device
    }

    /// What was pushed last is lost, and something else may take its offsets.
    func failOver(giving key: String? = nil) throws {
      feed.failOver(to: try MemoryFeed(copy, epoch: 6, clock: ManualClock()))
      guard let key else { return }
      var c = Device(2)
      c.number += 1
      _ = try handler.push(c.batch([c.put(key, "1")]))
    }
  }

  @Test("a batch that names a lost end is refused, also where the end is lost while it is judged")
  func lateBatch() throws {
    var a = Device(1)
    let world = try Failover(&a)
    a.number += 1
    var batch = a.batch([a.put("l", "1")])
    batch.knownHead = world.known
    let late = batch
    world.feed.beforeNextAppend { try? world.failOver() }
    #expect(failure { _ = try world.handler.push(late) } == .busy)
    let page = try world.handler.pull(PullRequest(replica: Device(9).id, after: .beginning))
    #expect(page.entries.map(\.key) == [Array("k".utf8)])
  }

  @Test("a page has no entry under a position that another entry was lost from meanwhile")
  func pageOverFailover() throws {
    var a = Device(1)
    let world = try Failover(&a)
    world.feed.beforeNextRead { try? world.failOver(giving: "new") }
    let page = try world.handler.pull(PullRequest(replica: Device(9).id, after: .beginning))
    #expect(page.entries.map(\.key) == ["k", "new"].map { Array($0.utf8) })
    #expect(page.entries.allSatisfy { page.range.contains($0.position) })
    #expect(page.range.contains(page.cursor))
  }

  @Test("sums are not answered from what was there before the end was lost")
  func digestOverFailover() throws {
    var a = Device(1)
    let world = try Failover(&a)
    let request = DigestRequest(replica: Device(9).id)
    _ = try world.handler.digest(request)
    try world.failOver(giving: "new")
    let fresh = try SyncHandler(
      feed: world.feed, options: SyncHandler.Options(lease: nil)
    ).digest(request)
    #expect(try world.handler.digest(request).parts == fresh.parts)
  }

  // MARK: One beside the other

  /// A store's log and other feeds, which are asked the same.
  private struct Pair {
    let handlers: [SyncHandler]
    var devices = (1...3).map { Device(UInt8($0)) }
    var cursors: [[FeedPosition]]
    /// By feed, its offsets in the order in which answers named them.
    private var offsets: [[UInt64: Int]]

    init(_ feeds: [any Feed & FeedUpkeep]) throws {
      handlers = try feeds.map { try SyncHandler(feed: $0) }
      cursors = feeds.map { _ in Array(repeating: .beginning, count: 3) }
      offsets = feeds.map { _ in [:] }
    }

    /// A position without what differs from feed to feed: its epoch, and whether records take
    /// offsets.
    private mutating func text(_ feed: Int, _ position: FeedPosition) -> String {
      let number = offsets[feed][position.offset] ?? offsets[feed].count
      offsets[feed][position.offset] = number
      return "#\(number)"
    }

    mutating func text(_ feed: Int, _ mark: ReplicaMark) -> String {
      let verdicts = mark.verdicts.map { verdict in
        verdict.name + (verdict.place.map { text(feed, $0) } ?? "")
      }
      return "\(mark.number) \(verdicts)"
    }

    mutating func text(_ feed: Int, _ entries: [FeedEntry]) -> String {
      let rows = entries.map { "\(text(feed, $0.position)) \($0.kind) \($0.key)" }
      return "\(rows) \(entries.map(\.operation)) \(entries.map(\.content))"
    }
  }

  private static let scopes = [
    SyncScope.everything, SyncScope(labels: ["a"]), SyncScope(keyPrefixes: ["k1"]),
  ]

  @Test(
    "a feed in memory or in PostgreSQL answers as the log of a store does",
    arguments: 1...30 as ClosedRange<UInt64>)
  func alike(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var pair = try Pair(Kind.all.map { try feed($0) })
    for handler in pair.handlers {
      for device in pair.devices { _ = try handler.hello(HelloRequest(replica: device.id)) }
    }
    for _ in 0..<60 {
      let who = Int(random.next() % 3)
      let answers: [String]
      switch random.next() % 8 {
      case 0:
        let policy: ConflictPolicy = random.next() % 2 == 0 ? .detect : .lastWriterWins
        for handler in pair.handlers { try handler.setPolicy(policy, forKeysWithPrefix: "k1") }
        continue
      case 1...4:
        pair.devices[who].number += 1
        let count = Int(random.next() % 3) + 1
        let changes = (0..<count).map { _ in change(&pair.devices[who], &random) }
        let batch = pair.devices[who].batch(changes)
        answers = try pair.handlers.indices.map {
          try pair.text($0, pair.handlers[$0].push(batch).mark)
        }
      case 5:
        let keys = (0..<12).map { Array("k\($0)".utf8) }
        let request = ValuesRequest(replica: pair.devices[who].id, keys: keys)
        answers = try pair.handlers.indices.map { index in
          pair.text(index, try pair.handlers[index].values(request).entries)
        }
      case 6:
        answers = try pair.handlers.map { handler in
          "\(try handler.digest(DigestRequest(replica: pair.devices[who].id)).parts.map(\.total))"
        }
      default:
        let scope = Self.scopes[Int(random.next() % 3)]
        let isEvery = random.next() % 2 == 0
        answers = try pair.handlers.enumerated().map { index, handler in
          let page = try handler.pull(
            PullRequest(
              replica: pair.devices[who].id, after: pair.cursors[index][who], scope: scope,
              limits: SyncLimits(changes: 5), everyVersion: isEvery))
          pair.cursors[index][who] = page.cursor
          return pair.text(index, page.entries)
        }
      }
      #expect(answers.allSatisfy { $0 == answers[0] }, "seed \(seed)")
    }
  }

  private func change(_ device: inout Device, _ random: inout SeededGenerator) -> PushedChange {
    let key = "k\(random.next() % 12)"
    let base: ChangeBase =
      random.next() % 3 == 0 || device.sequence == 0
      ? .absent : .operation(sequence: 1 + random.next() % device.sequence)
    let seconds = random.next() % 50
    if random.next() % 4 == 0 { return device.delete(key, base: base, at: seconds) }
    return device.put(
      key, "v\(random.next() % 4)", labels: random.next() % 2 == 0 ? ["a"] : ["b"], base: base,
      at: seconds, group: random.next() % 3 == 0 ? 7 : 0)
  }
}

/// A feed before whose next append or read something else happens; another one may take its place,
/// as at a failover.
final class RivalFeed: Feed, FeedUpkeep {
  private let current: Lock<any Feed & FeedUpkeep>
  private let beforeAppend = Lock<(() -> Void)?>(nil)
  private let beforeRead = Lock<(() -> Void)?>(nil)

  init(_ feed: any Feed & FeedUpkeep) { current = Lock(feed) }

  private var feed: any Feed & FeedUpkeep { current.withLock { $0 } }

  func failOver(to other: any Feed & FeedUpkeep) { current.withLock { $0 = other } }
  func beforeNextAppend(_ body: @escaping () -> Void) { beforeAppend.withLock { $0 = body } }
  func beforeNextRead(_ body: @escaping () -> Void) { beforeRead.withLock { $0 = body } }

  private func run(_ hook: Lock<(() -> Void)?>) {
    let body = hook.withLock { hook in
      defer { hook = nil }
      return hook
    }
    body?()
  }

  func append(
    _ batch: DecidedBatch, after view: FeedView
  ) throws(TidemarkError) -> FeedMark? {
    run(beforeAppend)
    return try feed.append(batch, after: view)
  }
  func read(_ query: FeedQuery) throws(TidemarkError) -> FeedPage {
    run(beforeRead)
    return try feed.read(query)
  }

  var id: ReplicaID { feed.id }
  var contents: (any FeedContents)? { feed.contents }
  /// What happens before an append may be another handler's batch, or one of the same handler.
  var judgesInTurn: Bool { false }
  var unreadableUploads: [TidemarkError] { feed.unreadableUploads }
  func look(_ question: FeedQuestion) throws(TidemarkError) -> FeedView { try feed.look(question) }
  func settle(through position: FeedPosition) throws(TidemarkError) {
    try feed.settle(through: position)
  }
  func heads(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: FeedHead] {
    try feed.heads(at: offsets)
  }
  func values(at offsets: [UInt64]) throws(TidemarkError) -> [UInt64: [UInt8]] {
    try feed.values(at: offsets)
  }
  func scan(
    into table: inout DigestTable, wants: ([UInt8], [[UInt8]]) -> Bool
  ) throws(TidemarkError) -> UInt64 { try feed.scan(into: &table, wants: wants) }
  func setLease(
    _ lease: FeedLease?, of replica: ReplicaID, after view: FeedView, most: Int, writes: Bool
  ) throws(TidemarkError) {
    try feed.setLease(lease, of: replica, after: view, most: most, writes: writes)
  }
  func setPolicy(_ policy: ConflictPolicy?, prefix: [UInt8]) throws(TidemarkError) -> FeedPosition {
    try feed.setPolicy(policy, prefix: prefix)
  }
  func observe(_ body: @escaping @Sendable () -> Void) -> Int { feed.observe(body) }
  func stopObserving(_ token: Int) { feed.stopObserving(token) }
  func space(from minimum: Int) throws(TidemarkError) -> LogSpace {
    try feed.space(from: minimum)
  }
  func compact(
    leaseSeconds: UInt32?, unless shouldStop: @escaping @Sendable () -> Bool
  ) throws(TidemarkError) -> CompactionSummary {
    try feed.compact(leaseSeconds: leaseSeconds, unless: shouldStop)
  }
  func close() throws(TidemarkError) { try feed.close() }
}
