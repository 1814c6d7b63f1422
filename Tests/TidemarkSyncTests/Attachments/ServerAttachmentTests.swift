import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Attachments at the server")
struct ServerAttachmentTests {
  private let film = content(300_000)
  private let piece = AttachRequest.partBytes

  @Test("parts go on where they were, also after a restart", arguments: [false, true])
  func parts(restarts: Bool) throws {
    let bench = Bench(restarts: restarts)
    var a = Device(1)
    #expect(try bench.attach(a, film, 0..<0).received == 0)
    #expect(try bench.attach(a, film, 0..<2 * piece).received == 2 * piece)
    // A part that came twice, one that overlaps, and one behind a gap.
    #expect(try bench.attach(a, film, 0..<2 * piece).received == 2 * piece)
    #expect(try bench.attach(a, film, piece..<3 * piece).received == 3 * piece)
    #expect(try bench.attach(a, film, 4 * piece..<300_000).received == 3 * piece)
    #expect(try bench.attach(a, film, 0..<0).received == 3 * piece)
    let change = a.put("film", attachment: film)
    #expect(failure { _ = try bench.push(&a, change) } == .busy)
    a.number -= 1
    #expect(try bench.attach(a, film, 2 * piece..<300_000).received == 300_000)
    #expect(try bench.push(&a, change).map(\.name) == ["applied"])
    #expect(try bench.pullAll(Device(2)).entries.map(\.content.attachment) == [.of(film)])
    #expect(try bench.fetch(film) == film)
    let left = try bench.withEngine { try $0.attachments.parts().count }
    #expect(left == 0)
  }

  @Test("content that is not what its hash says is refused, and leaves nothing")
  func wrongContent() throws {
    let bench = Bench()
    let a = Device(1)
    var other = film
    other[100] ^= 1
    let handler = try bench.handler()
    let request = AttachRequest(
      replica: a.id, key: [1], attachment: .of(film), offset: 0, bytes: other)
    #expect(failure { _ = try handler.attach(request) } == .malformed)
    #expect(try bench.attach(a, film, 0..<0).received == 0)
    #expect(try bench.attach(a, film, 0..<300_000).received == 300_000)
  }

  @Test("content that the store has is not wanted again, whoever has brought it")
  func isThere() throws {
    let bench = Bench()
    var a = Device(1)
    _ = try bench.attach(a, film, 0..<300_000)
    _ = try bench.push(&a, a.put("film", attachment: film))
    var b = Device(2)
    #expect(try bench.attach(b, film, 0..<0, key: "other").received == 300_000)
    #expect(try bench.push(&b, b.put("other", attachment: film)).map(\.name) == ["applied"])
  }

  @Test("a caller of a bounded reach names only content that he has sent or that is his key's")
  func bounded() throws {
    let bench = Bench()
    var (a, b) = (Device(1), Device(2))
    let access = SyncAccess(to: SyncScope(keyPrefixes: ["b/"]))
    _ = try bench.attach(a, film, 0..<300_000)
    _ = try bench.push(&a, a.put("film", attachment: film))
    // The hash alone gives nobody the content.
    #expect(try bench.attach(b, film, 0..<0, key: "b/1", access: access).received == 0)
    let change = b.put("b/1", attachment: film)
    #expect(failure { _ = try bench.push(&b, change, access: access) } == .busy)
    #expect(try bench.fetch(film, access: access) == nil)
    #expect(
      try bench.attach(b, film, 0..<0, key: "film", access: access).rejection?.code == "outOfScope")
    b.number -= 1
    _ = try bench.attach(b, film, 0..<300_000, key: "b/1", access: access)
    #expect(try bench.push(&b, change, access: access).map(\.name) == ["applied"])
    #expect(try bench.fetch(film, key: "b/1", access: access) == film)
    // An edit of the key goes on naming it, after a restart as well.
    try bench.close()
    #expect(try bench.attach(b, film, 0..<0, key: "b/1", access: access).received == 300_000)
    let edit = b.put("b/1", attachment: film, labels: ["seen"])
    #expect(try bench.push(&b, edit, access: access).map(\.name) == ["applied"])
  }

  @Test("a bounded caller names content by two changes of a batch, and a failed push costs nothing")
  func twice() throws {
    let bench = Bench()
    var a = Device(1)
    let other = content(400_000, 2)
    let access = SyncAccess(to: SyncScope(keyPrefixes: ["a/"]))
    _ = try bench.attach(a, film, 0..<300_000, key: "a/1", access: access)
    // Whole content stays so, over a restart as well.
    try bench.close()
    let changes = [
      a.put("a/1", attachment: film), a.put("a/2", attachment: film),
      a.put("a/3", attachment: other),
    ]
    #expect(failure { _ = try bench.push(&a, all: changes, access: access) } == .busy)
    #expect(try bench.attach(a, film, 0..<0, key: "a/1", access: access).received == 300_000)
    _ = try bench.attach(a, other, 0..<400_000, key: "a/3", access: access)
    a.number -= 1
    let verdicts = try bench.push(&a, all: changes, access: access)
    #expect(verdicts.map(\.name) == ["applied", "applied", "applied"])
    #expect(try bench.fetch(film, key: "a/2", access: access) == film)
    let left = try bench.withEngine { try $0.attachments.parts().count }
    #expect(left == 0)
  }

  @Test("content beyond the limit is refused with the reason, unless it may be a value")
  func tooLarge() throws {
    let bench = Bench()
    bench.options.attachmentBytes = 200_000
    var a = Device(1)
    let large = AttachmentReference(
      sha256: [UInt8](repeating: 1, count: 32), length: Limits.valueBytes + 1)
    let answer = try bench.handler().attach(
      AttachRequest(replica: a.id, key: [1], attachment: large, offset: 0, bytes: []))
    #expect(answer.rejection?.code == "tooLarge" && answer.received == 0)
    #expect(
      try bench.handler().hello(HelloRequest(replica: a.id)).attachmentBytes == 200_000)
    #expect(try bench.attach(a, film, 0..<300_000).received == 300_000)
    #expect(failure { _ = try bench.push(&a, a.put("film", attachment: film)) } == .busy)
    try bench.close()
    bench.options.attachmentBytes = 0
    #expect(try bench.handler().hello(HelloRequest(replica: a.id)).attachmentBytes == nil)
  }

  @Test("uploads beyond their number wait, and those that nobody goes on with make room")
  func room() throws {
    let bench = Bench()
    bench.options.attachmentUploads = 2
    let a = Device(1)
    let films = (0..<4).map { content(200_000, UInt64($0)) }
    for film in films.prefix(2) { _ = try bench.attach(a, film, 0..<piece) }
    #expect(failure { _ = try bench.attach(a, films[2], 0..<piece) } == .busy)
    // One that goes on is not disturbed.
    bench.clock.advance(by: .seconds(40))
    #expect(try bench.attach(a, films[1], piece..<2 * piece).received == 2 * piece)
    bench.clock.advance(by: .seconds(40))
    #expect(try bench.attach(a, films[2], 0..<piece).received == piece)
    #expect(try bench.attach(a, films[0], 0..<0).received == 0)
    #expect(try bench.attach(a, films[1], 0..<0).received == 2 * piece)
  }

  @Test("uploads that nobody has gone on with for a week go with the next compaction")
  func old() throws {
    let bench = Bench()
    let a = Device(1)
    _ = try bench.attach(a, film, 0..<piece)
    bench.clock.advance(by: .seconds(8 * 86_400))
    try bench.close()
    _ = try bench.handler().compact()
    #expect(try bench.attach(a, film, 0..<0).received == 0)
  }

  @Test("content stays while an entry names it or is to name it, and goes with the last one")
  func sweep() throws {
    let bench = Bench()
    var a = Device(1)
    let unnamed = content(100_000, 9)
    _ = try bench.attach(a, film, 0..<300_000)
    _ = try bench.push(&a, a.put("film", attachment: film))
    _ = try bench.attach(a, unnamed, 0..<100_000, key: "never")
    let swept = try bench.withEngine { try $0.sweepAttachments() }
    #expect(swept.removed == 0)
    #expect(try bench.attach(a, unnamed, 0..<0, key: "never").received == 100_000)
    #expect(try bench.fetch(film) == film)
    let base = try #require(try bench.pullAll(Device(2)).entries.first?.position)
    _ = try bench.push(&a, a.delete("film", base: .position(base)))
    #expect(try bench.fetch(film) == nil)
  }

  @Test("an acknowledged entry has its content after any cut of the power", arguments: 1...30)
  func powerCut(seed: UInt64) throws {
    let bench = Bench(disk: SimulatedFileSystem(seed: seed))
    var a = Device(1)
    let change = a.put("film", attachment: film)
    _ = try bench.handler().hello(HelloRequest(replica: a.id))
    bench.disk.plan = .powerCut(atCall: Int(seed))
    var isAcknowledged = false
    do {
      _ = try bench.attach(a, film, 0..<2 * piece)
      _ = try bench.attach(a, film, 2 * piece..<300_000)
      a.number = 1
      isAcknowledged = try bench.handler().push(a.batch([change])).mark.number == 1
    } catch { #expect(!bench.disk.isRunning, "seed \(seed): \(error)") }
    bench.abandon()
    if bench.disk.isRunning { bench.disk.powerCut() }
    bench.disk.plan = .none
    bench.disk.restart(keeping: .loseAll)
    let mark = try bench.handler().hello(HelloRequest(replica: a.id)).mark
    #expect(!isAcknowledged || mark.number == 1, "seed \(seed)")
    if mark.number == 1 {
      #expect(try bench.fetch(film) == film, "seed \(seed)")
    } else {
      #expect(try bench.fetch(film) == nil, "seed \(seed)")
      // It goes on from whatever is there.
      var received = try bench.attach(a, film, 0..<0).received
      while received < 300_000 { received = try bench.attach(a, film, received..<300_000).received }
      a.number = 0
      #expect(try bench.push(&a, change).map(\.name) == ["applied"])
    }
  }

  @Test("entries that differ in nothing but their attachments differ in the sums")
  func digest() throws {
    let bench = Bench()
    var a = Device(1)
    let other = content(1_000, 7)
    for content in [film, other] { _ = try bench.attach(a, content, 0..<content.count) }
    func sum() throws -> DigestSum {
      try bench.handler().digest(DigestRequest(replica: a.id)).parts[0].total
    }
    _ = try bench.push(&a, a.put("film", attachment: film))
    let first = try sum()
    let base = try #require(try bench.pullAll(Device(2)).entries.first?.position)
    let change = a.put("film", attachment: other, base: .position(base))
    #expect(try bench.push(&a, change).map(\.name) == ["applied"])
    #expect(try sum() != first)
  }
}
