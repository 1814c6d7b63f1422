import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Leases of whoever comes")
struct LeaseBoundTests {
  private func bench(most: Int = 10_000, restarts: Bool = false) -> Bench {
    var options = SyncHandler.Options(lease: .seconds(1000))
    options.mostLeases = most
    return Bench(restarts: restarts, options: options)
  }

  private func stranger(_ number: Int) -> ReplicaID {
    ReplicaID(padding: (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } + [7])
  }

  private func recorded(_ bench: Bench) throws -> Int {
    try bench.feed().records.withLock { $0.keys(of: .feedLease).count }
  }

  /// Says hello under many names.
  private func flood(_ bench: Bench, _ names: Range<Int>) throws {
    for name in names {
      let answer = try bench.handler().hello(HelloRequest(replica: stranger(name)))
      #expect(!answer.isLeaseExpired)
    }
  }

  @Test("hellos under ever new names take no more of log and memory beyond a bound")
  func flood() throws {
    let bench = bench()
    try flood(bench, 0..<FeedLeases.mostIdle)
    let head = try bench.look().range.head
    try flood(bench, 10_000..<13_000)
    #expect(try bench.look().range.head == head)
    #expect(try recorded(bench) == FeedLeases.mostIdle)
    let rows = try bench.feed().leases.withLock { $0.rows.values.map(\.isRecorded) }
    #expect(rows.count { $0 } == FeedLeases.mostIdle)
    #expect(rows.count { !$0 } == FeedLeases.mostUnrecorded)
  }

  @Test("a flood of names takes nobody's lease, and who comes then gets one by what it does")
  func honest() throws {
    let bench = bench()
    try bench.use(bench.configuration(retention: Retention(age: .seconds(0))))
    var a = Device(1)
    var b = Device(2)
    let late = Device(3)
    _ = try bench.push(&a, a.put("k", "1"), a.put("l", "1"))
    _ = try bench.handler().hello(HelloRequest(replica: late.id))
    let seen = try bench.pullAll(late).cursor
    _ = try bench.pullAll(late, after: seen)
    try flood(bench, 0..<2_500)
    #expect(try bench.push(&b, b.put("m", "1")).map(\.name) == ["applied"])
    #expect(
      try bench.feed().leases.withLock { leases in
        [a.id, b.id, late.id].allSatisfy { leases.rows[$0]?.isRecorded == true }
      })
    _ = try bench.push(&a, a.delete("k", base: .operation(sequence: 1)))
    for device in [a, b] {
      _ = try bench.pullAll(device, after: try bench.pullAll(device).cursor)
    }
    bench.clock.advance(by: .seconds(2))
    try bench.handler().compact()
    // The put of what was deleted has gone, and would take the delete with it.
    #expect(try bench.look().historyFrom > 0)
    #expect(try bench.pullAll(late, after: seen).entries.map(\.kind) == [.put, .delete])
  }

  @Test("a replica that only said hello keeps no deletes; one that has begun to read does")
  func idle() throws {
    let bench = bench()
    var a = Device(1)
    let reader = Device(2)
    _ = try bench.push(&a, a.put("k", "1"), a.put("l", "1"))
    try flood(bench, 0..<3)
    var cursor = FeedPosition.beginning
    func deletesAreKept(_ key: String, _ sequence: UInt64) throws -> Bool {
      _ = try bench.push(&a, a.delete(key, base: .operation(sequence: sequence)))
      cursor = try bench.pullAll(a, after: cursor).cursor
      _ = try bench.pullAll(a, after: cursor)
      _ = try bench.push(&a, a.put("m", "\(sequence)"))
      bench.clock.advance(by: .seconds(2))
      try bench.use(bench.configuration(retention: Retention(age: .seconds(0))))
      let before = try bench.look().range.truncatedThrough
      try bench.handler().compact()
      return try bench.look().range.truncatedThrough == before
    }
    #expect(try !deletesAreKept("k", 1))
    _ = try bench.handler().hello(HelloRequest(replica: reader.id))
    let page = try bench.handler().pull(
      PullRequest(replica: reader.id, after: .beginning, limits: SyncLimits(changes: 1)))
    _ = try bench.handler().pull(
      PullRequest(replica: reader.id, after: page.cursor, limits: SyncLimits(changes: 1)))
    #expect(try deletesAreKept("l", 2), "also after the handler was opened anew")
  }

  @Test("a replica that only pushed compares once deletes are gone, even without leases")
  func pushedOnly() throws {
    let bench = bench()
    bench.options.lease = nil
    try bench.use(bench.configuration(retention: Retention(age: .seconds(0))))
    var a = Device(1)
    var b = Device(2)
    _ = try bench.push(&a, a.put("k", "1"))
    let seen = try bench.pullAll(b).entries
    _ = try bench.push(&b, b.delete("k", base: .position(try #require(seen.last).position)))
    _ = try bench.push(&b, b.put("l", "1"))
    bench.clock.advance(by: .seconds(10))
    try bench.handler().compact()
    #expect(try bench.look().range.truncatedThrough > 0)
    #expect(failure { _ = try bench.pullAll(a) } == .cursorGone)
    #expect(try bench.pullAll(Device(3)).entries.map(\.key) == [Array("l".utf8)])
    _ = try bench.handler().hello(HelloRequest(replica: a.id))
    #expect(failure { _ = try bench.pullAll(a) } == .cursorGone)
    let head = try bench.pullAll(Device(3)).cursor
    _ = try bench.handler().hello(
      HelloRequest(replica: a.id, cursor: head, hasResynced: true))
    #expect(try bench.pullAll(a, after: head).entries.isEmpty)
  }

  @Test("where no more leases may be, newcomers work, and compare when theirs was forgotten")
  func full() throws {
    let bench = bench(most: 20)
    var a = Device(1)
    _ = try bench.push(&a, a.put("k", "1"), a.put("l", "1"))
    for name in 0..<100 {
      _ = try bench.handler().hello(HelloRequest(replica: stranger(name)))
      let page = try bench.handler().pull(
        PullRequest(replica: stranger(name), after: .beginning, limits: SyncLimits(changes: 1)))
      _ = try bench.handler().pull(
        PullRequest(replica: stranger(name), after: page.cursor))
    }
    #expect(try recorded(bench) == 20)
    var b = Device(2)
    #expect(try bench.push(&b, b.put("m", "1")).map(\.name) == ["applied"])
    #expect(try bench.push(&b, b.put("n", "1")).map(\.name) == ["applied"])
    try bench.close()
    b.number += 1
    #expect(failure { _ = try bench.handler().push(b.batch([])) } == .leaseExpired)
    let hello = HelloRequest(replica: b.id, hasResynced: true)
    #expect(try !bench.handler().hello(hello).isLeaseExpired)
    #expect(try bench.handler().push(b.batch([])).mark.number == 3)
    #expect(try bench.push(&a, a.put("o", "1")).map(\.name) == ["applied"])
    // A lease that has run out makes room.
    bench.clock.advance(by: .seconds(2000))
    var c = Device(3)
    _ = try bench.push(&c, c.put("p", "1"))
    #expect(try recorded(bench) == 1)
  }

  @Test("deletes kept for a lease go once that has run out, though nobody calls")
  func expiredPin() throws {
    let bench = bench()
    try bench.use(bench.configuration(retention: Retention(age: .seconds(0))))
    var a = Device(1)
    _ = try bench.push(&a, a.put("k", "1"))
    _ = try bench.push(&a, a.delete("k", base: .operation(sequence: 1)))
    bench.clock.advance(by: .seconds(10))
    try bench.handler().compact()
    #expect(try bench.look().range.truncatedThrough == 0)
    bench.clock.advance(by: .seconds(1000))
    try bench.handler().compact()
    #expect(try bench.look().range.truncatedThrough > 0)
  }

  @Test("leases that have run out go with a compaction, and who comes back has to compare")
  func expired() throws {
    let bench = bench(restarts: true)
    var a = Device(1)
    _ = try bench.push(&a, a.put("k", "1"))
    try flood(bench, 0..<30)
    bench.clock.advance(by: .seconds(900))
    let b = Device(2)
    _ = try bench.handler().hello(HelloRequest(replica: b.id))
    #expect(try recorded(bench) == 32)
    bench.clock.advance(by: .seconds(200))
    try bench.handler().compact()
    #expect(try recorded(bench) == 1)
    a.number += 1
    #expect(failure { _ = try bench.handler().push(a.batch([])) } == .leaseExpired)
    #expect(try bench.handler().hello(HelloRequest(replica: a.id)).isLeaseExpired)
    let cursor = try bench.pullAll(b).cursor
    #expect(
      try bench.handler().hello(HelloRequest(replica: stranger(3), cursor: cursor))
        .isLeaseExpired)
  }
}
