import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Leases, and deletes that are kept for those who have not seen them")
struct LeaseTests {
  /// The first time of a bench's clock, in seconds.
  private static let start = ManualClock().now().seconds

  private func bench(restarts: Bool = true) -> Bench {
    Bench(restarts: restarts, options: SyncHandler.Options(lease: .seconds(1000)))
  }

  @Test("a replica that does not say hello in time must compare everything before it may push")
  func expiry() throws {
    let bench = bench()
    var a = Device(1)
    _ = try bench.push(&a, a.put("k", "1"))
    bench.clock.advance(by: .seconds(900))
    var hello = HelloRequest(replica: a.id)
    #expect(try bench.handler().hello(hello).leaseSeconds == 1000)
    bench.clock.advance(by: .seconds(999))
    #expect(try bench.push(&a, a.put("k", "2")).map(\.name) == ["applied"])
    bench.clock.advance(by: .seconds(2))
    let late = try bench.handler().hello(hello)
    #expect(late.isLeaseExpired && late.leaseSeconds == 0)
    a.number += 1
    let batch = a.batch([a.put("k", "3")])
    #expect(failure { _ = try bench.handler().push(batch) } == .leaseExpired)
    // A batch that was taken is answered still.
    var known = batch
    known.number = 2
    #expect(try bench.handler().push(known).mark.number == 2)
    hello.hasResynced = true
    #expect(try !bench.handler().hello(hello).isLeaseExpired)
    #expect(try bench.handler().push(batch).mark.verdicts.map(\.name) == ["applied"])
  }

  @Test("without hello there is no lease, and without leases nobody asks for one")
  func noLease() throws {
    let bench = bench()
    var a = Device(1)
    a.number = 1
    let batch = a.batch([a.put("k", "1")])
    #expect(failure { _ = try bench.handler().push(batch) } == .leaseExpired)
    bench.options.lease = nil
    #expect(try bench.handler().push(batch).mark.number == 1)
    let answer = try bench.handler().hello(HelloRequest(replica: a.id))
    #expect(answer.leaseSeconds == nil && !answer.isLeaseExpired)
  }

  @Test("a replica that was forgotten must compare everything when it comes back")
  func forgotten() throws {
    let bench = bench()
    var a = Device(1)
    _ = try bench.push(&a, a.put("k", "1"))
    try bench.handler().forget(a.id)
    #expect(try bench.handler().hello(HelloRequest(replica: a.id)).isLeaseExpired)
    a.number += 1
    #expect(failure { _ = try bench.handler().push(a.batch([])) } == .leaseExpired)
    #expect(
      try !bench.handler().hello(HelloRequest(replica: a.id, hasResynced: true)).isLeaseExpired)
    #expect(try bench.handler().push(a.batch([])).mark.number == 2)
  }

  @Test("a hello is not written to the log each time")
  func fewWrites() throws {
    let bench = bench(restarts: false)
    let a = Device(1)
    for _ in 0..<50 {
      _ = try bench.handler().hello(HelloRequest(replica: a.id))
      bench.clock.advance(by: .seconds(1))
    }
    _ = try bench.handler().hello(HelloRequest(replica: a.id))
    #expect(try bench.look().range.head == 1)
  }

  @Test("for a replica that says it reads nothing no deletes are kept, and it may push")
  func pushesOnly() throws {
    let bench = bench(restarts: false)
    var a = Device(1)
    var b = Device(2)
    let pushing = HelloRequest(replica: a.id, reads: false)
    _ = try bench.handler().hello(pushing)
    a.number += 1
    _ = try bench.handler().push(a.batch([a.put("k", "1"), a.put("mine", "1")]))
    let put = try #require(try bench.pullAll(b).entries.first)
    _ = try bench.push(&b, b.delete("k", base: .position(put.position)))
    let end = try bench.pullAll(b).cursor
    _ = try bench.handler().hello(HelloRequest(replica: b.id, cursor: end))
    _ = try bench.handler().hello(pushing)
    let feed = try bench.feed()
    #expect(
      try feed.engine.compact(CompactionOptions(dropHistory: true)).droppedTombstones == 1)
    try bench.close()
    #expect(try !bench.handler().hello(pushing).isLeaseExpired)
    a.number += 1
    let pushed = try bench.handler().push(a.batch([a.put("mine", "2")]))
    #expect(pushed.mark.verdicts.map(\.name) == ["applied"])
    // It is told of what it has sent itself, but not beyond where a delete of others may be gone.
    let own = PullRequest(replica: a.id, after: .beginning, ownOnly: true)
    let page = try bench.handler().pull(own)
    #expect(page.entries.isEmpty && page.cursor == .beginning)
    let all = PullRequest(replica: a.id, after: .beginning)
    #expect(failure { _ = try bench.handler().pull(all) } == .cursorGone)
  }

  @Test("deletes are kept for as long after the last session that reads as for one that is away")
  func readsNoMore() throws {
    let bench = bench(restarts: true)
    var a = Device(1)
    _ = try bench.push(&a, a.put("k", "1"))
    for _ in 0..<3 {
      bench.clock.advance(by: .seconds(400))
      _ = try bench.handler().hello(HelloRequest(replica: a.id, reads: false))
      let feed = try bench.feed()
      let isKept = feed.leases.withLock { $0.earliestCursor(at: feed.now) } != nil
      #expect(isKept == (bench.clock.now().seconds < 1000 + Self.start))
    }
  }

  @Test("compaction in the handler's process keeps deletes behind the cursor of a live lease")
  func pinned() throws {
    let bench = bench(restarts: false)
    var a = Device(1)
    let b = Device(2)
    _ = try bench.push(&a, a.put("k", "1"), a.put("l", "1"))
    _ = try bench.handler().hello(HelloRequest(replica: b.id))
    let cursor = try bench.pullAll(b).cursor
    _ = try bench.handler().hello(HelloRequest(replica: b.id, cursor: cursor))
    _ = try bench.push(&a, a.delete("k", base: .operation(sequence: 1)))
    let aCursor = try bench.pullAll(a).cursor
    _ = try bench.handler().hello(HelloRequest(replica: a.id, cursor: aCursor))
    let feed = try bench.feed()
    try feed.engine.compact(CompactionOptions(dropHistory: true))
    #expect(try bench.pullAll(b, after: cursor).entries.map(\.kind) == [.delete])
    // Once all have seen it, it may go.
    _ = try bench.handler().hello(HelloRequest(replica: b.id, cursor: aCursor))
    _ = try bench.push(&a, a.put("m", "1"))
    try feed.engine.compact(CompactionOptions(dropHistory: true))
    #expect(
      try bench.handler().hello(HelloRequest(replica: a.id, cursor: aCursor)).range.truncatedThrough
        > 0)
    #expect(
      failure {
        _ = try bench.handler().pull(PullRequest(replica: b.id, after: cursor))
      } == .cursorGone)
  }

  @Test("a copy of a replica that has compared everything must compare everything, too")
  func copied() throws {
    let bench = bench(restarts: false)
    var a = Device(1)
    let b = Device(2)
    _ = try bench.push(&a, a.put("k", "1"), a.put("l", "1"))
    _ = try bench.handler().hello(HelloRequest(replica: b.id))
    let former = try bench.pullAll(b).cursor
    bench.clock.advance(by: .seconds(2000))
    var hello = HelloRequest(replica: a.id, cursor: former, hasResynced: true)
    #expect(try !bench.handler().hello(hello).isLeaseExpired)
    _ = try bench.push(&a, a.delete("k", base: .operation(sequence: 1)))
    let end = try bench.pullAll(a).cursor
    hello.cursor = end
    _ = try bench.handler().hello(hello)
    let feed = try bench.feed()
    try feed.engine.compact(CompactionOptions(dropHistory: true))
    #expect(
      try bench.handler().hello(HelloRequest(replica: b.id, cursor: former)).isLeaseExpired)
    hello = HelloRequest(replica: b.id, cursor: end, hasResynced: true)
    #expect(try !bench.handler().hello(hello).isLeaseExpired)
    // The copy stands where both stood, and the delete is gone.
    #expect(
      try bench.handler().hello(HelloRequest(replica: b.id, cursor: former)).isLeaseExpired)
    hello.hasResynced = false
    #expect(try !bench.handler().hello(hello).isLeaseExpired)
  }

  @Test("a replica holds what it has sent and not read: its deletes are kept")
  func sentAndNotRead() throws {
    let bench = bench(restarts: false)
    var a = Device(1)
    var b = Device(2)
    _ = try bench.push(&a, a.put("k", "1"))
    let put = try #require(try bench.pullAll(b).entries.last)
    #expect(
      try bench.push(&b, b.delete("k", base: .position(put.position))).map(\.name) == ["applied"])
    let end = try bench.pullAll(b).cursor
    _ = try bench.handler().hello(HelloRequest(replica: b.id, cursor: end))
    let feed = try bench.feed()
    try feed.engine.compact(CompactionOptions(dropHistory: true))
    #expect(try bench.pullAll(a).entries.last?.kind == .delete)
  }

  @Test("a replica that begins with nothing after deletes were dropped reads on, page by page")
  func clearedReader() throws {
    let bench = bench()
    var a = Device(1)
    for i in 0..<20 { _ = try bench.push(&a, a.put("k\(i)", "1"), a.put("gone", "\(i)")) }
    _ = try bench.push(&a, a.delete("gone", base: .operation(sequence: a.sequence)))
    try bench.withEngine { try $0.compact(CompactionOptions(dropHistory: true)) }
    let reader = Device(2)
    let hello = try bench.handler().hello(HelloRequest(replica: reader.id))
    #expect(hello.range.truncatedThrough == 0, "nothing is missing for this reader")
    let found = try bench.pullAll(reader, limits: SyncLimits(changes: 3))
    #expect(found.entries.count == 20 && found.pages > 5)
    #expect(found.entries.allSatisfy { $0.kind == .put })
    // Somebody else in the middle, who may have seen what was deleted, must compare.
    let middle = found.entries[3].position
    let other = Device(3)
    #expect(
      failure { _ = try bench.handler().pull(PullRequest(replica: other.id, after: middle)) }
        == .cursorGone)
  }
}
