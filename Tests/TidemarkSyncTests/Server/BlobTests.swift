import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Large values that travel apart")
struct BlobTests {
  private let piece = AttachRequest.partBytes

  private func put(_ device: inout Device, _ key: String, _ value: [UInt8]) -> PushedChange {
    var change = device.put(key, "")
    change.content = SyncContent(blob: .of(value))
    return change
  }

  @Test(
    "parts become the value of the change that names it, and leave no file",
    arguments: [false, true])
  func parts(restarts: Bool) throws {
    let bench = Bench(restarts: restarts)
    var a = Device(1)
    let value = content(300_000)
    #expect(try bench.attach(a, value, 0..<2 * piece).received == 2 * piece)
    #expect(try bench.attach(a, value, 2 * piece..<300_000).received == 300_000)
    let change = put(&a, "photo", value)
    let verdicts = try bench.push(&a, a.put("first", "1"), change, a.put("last", "1"))
    #expect(verdicts.map(\.name) == ["applied", "applied", "applied"])
    let offsets = verdicts.compactMap { $0.place?.offset }
    #expect(offsets == [offsets[0], offsets[0] + 1, offsets[0] + 2])
    let entries = try bench.pullAll(Device(2)).entries
    #expect(entries.map(\.content.value) == [Array("1".utf8), value, Array("1".utf8)])
    #expect(try bench.attach(a, value, 0..<0).received == 0)
    let left = try bench.withEngine { engine in
      try engine.attachments.parts().count + engine.attachments.hashes().count
    }
    #expect(left == 0)
  }

  @Test("two changes of a batch may have the same large value")
  func twice() throws {
    let bench = Bench()
    var a = Device(1)
    let value = content(300_000)
    _ = try bench.attach(a, value, 0..<300_000)
    let (one, other) = (put(&a, "photo", value), put(&a, "copy", value))
    #expect(try bench.push(&a, one, other).map(\.name) == ["applied", "applied"])
    #expect(try bench.pullAll(Device(2)).entries.map(\.content.value) == [value, value])
  }

  @Test("a value that the store has as an attachment need not be uploaded")
  func isAttached() throws {
    let bench = Bench()
    var a = Device(1)
    let film = content(300_000)
    _ = try bench.attach(a, film, 0..<300_000)
    _ = try bench.push(&a, a.put("film", attachment: film))
    #expect(try bench.attach(a, film, 0..<0, key: "copy").received == 300_000)
    let change = put(&a, "copy", film)
    #expect(try bench.push(&a, change).map(\.name) == ["applied"])
    #expect(try bench.fetch(film) == film)
  }

  @Test("a server that takes no attachments takes large values")
  func withoutAttachments() throws {
    let bench = Bench()
    bench.options.attachmentBytes = 0
    var a = Device(1)
    let value = content(300_000)
    #expect(try bench.attach(a, value, 0..<300_000).received == 300_000)
    let change = put(&a, "photo", value)
    #expect(failure { _ = try bench.push(&a, a.put("film", attachment: value)) } == .busy)
    a.number -= 1
    #expect(try bench.push(&a, change).map(\.name) == ["applied"])
  }

  @Test("a batch whose value is not there as a whole changes nothing, and counts once it is")
  func incomplete() throws {
    let bench = Bench()
    var a = Device(1)
    var b = Device(2)
    let (value, other) = (content(300_000), content(400_000, 2))
    _ = try bench.push(&a, a.put("k", "1"))
    _ = try bench.attach(a, other, 0..<400_000)
    _ = try bench.attach(a, value, 0..<3 * piece)
    // Somebody else's upload is nobody's business.
    _ = try bench.push(&b, b.put("l", "1"))
    _ = try bench.attach(b, value, 0..<300_000)
    a.number += 1
    let batch = a.batch([put(&a, "film", other), put(&a, "photo", value)])
    #expect(failure { _ = try bench.handler().push(batch) } == .busy)
    #expect(try bench.value("photo") == nil)
    #expect(try bench.attach(a, other, 0..<0).received == 400_000)
    #expect(try bench.attach(a, value, 3 * piece..<300_000).received == 300_000)
    let answer = try bench.handler().push(batch)
    #expect(answer.mark.verdicts.map(\.name) == ["applied", "applied"])
    // Sent again, it needs no value.
    #expect(try bench.handler().push(batch).mark == answer.mark)
  }

  @Test("a value that is not what its name says is refused, and can be uploaded again")
  func anotherValue() throws {
    let bench = Bench()
    var a = Device(1)
    let value = content(300_000)
    _ = try bench.push(&a, a.put("k", "1"))
    let wrong = AttachRequest(
      replica: a.id, key: [1], attachment: .of(value), offset: 0, bytes: content(300_000, 2))
    #expect(failure { _ = try bench.handler().attach(wrong) } == .malformed)
    a.number += 1
    let batch = a.batch([put(&a, "photo", value)])
    #expect(failure { _ = try bench.handler().push(batch) } == .busy)
    #expect(try bench.attach(a, value, 0..<300_000).received == 300_000)
    #expect(try bench.handler().push(batch).mark.verdicts.map(\.name) == ["applied"])
  }

  @Test("a value that was said to be whole is there after the power was cut, and then its change")
  func crash() throws {
    let bench = Bench()
    bench.disk.keepsCrashPoints = true
    var a = Device(1)
    let value = content(300_000)
    var moments: [(disk: DiskSnapshot, isWhole: Bool, isPushed: Bool)] = []
    func take(isWhole: Bool = false, isPushed: Bool = false) {
      moments += bench.disk.takeCrashPoints().map { ($0, isWhole, isPushed) }
    }
    for part in [0..<2 * piece, 2 * piece..<3 * piece, 3 * piece..<300_000] {
      _ = try bench.attach(a, value, part)
    }
    take()
    _ = try bench.attach(Device(2), content(100_000, 2), 0..<piece)
    _ = try bench.handler().hello(HelloRequest(replica: a.id))
    take(isWhole: true)
    let change = put(&a, "photo", value)
    _ = try bench.push(&a, change)
    take()
    _ = try bench.push(&a, a.put("last", "1"))
    take(isPushed: true)
    #expect(moments.count > 20)
    for (call, moment) in moments.enumerated() {
      for survival in Survival.sweep(seed: UInt64(call), randoms: 1) {
        let disk = SimulatedFileSystem(moment.disk, keeping: survival, seed: 7)
        var again = Device(1)
        let restored = Bench(disk: disk, openings: 10)
        let mark = try restored.handler().hello(HelloRequest(replica: again.id)).mark
        #expect(!moment.isPushed || mark.number > 0, "call \(call), \(survival)")
        if mark.number == 0 {
          let kept = try restored.attach(again, value, 0..<0).received
          #expect(!moment.isWhole || kept == value.count, "call \(call), \(survival)")
          #expect(try restored.attach(again, value, kept..<300_000).received == 300_000)
          #expect(try restored.push(&again, change).map(\.name) == ["applied"])
        }
        let found = try restored.pullAll(Device(3)).entries.first?.content.value
        #expect(found == value, "call \(call), \(survival)")
      }
    }
  }

  @Test("where there is no room the upload goes that has waited longest, and none that goes on")
  func room() throws {
    let bench = Bench()
    // The room of one batch, and no more.
    bench.options.attachmentBytes = 0
    bench.options.attachmentUploadBytes = 0
    let value = content(40 << 20)
    let name = AttachmentReference.of(value)
    let other = content(1 << 20, 2)
    let (a, b, c) = (Device(1), Device(2), Device(3))
    let step = 4 << 20
    func upload(_ device: Device, _ part: Range<Int>) throws -> Int {
      try bench.handler().attach(
        AttachRequest(
          replica: device.id, key: [1], attachment: name, offset: part.lowerBound,
          bytes: Array(value[part]))
      ).received
    }
    func upload(_ device: Device, from first: Int, to end: Int) throws {
      for start in stride(from: first, to: end, by: step) {
        #expect(try upload(device, start..<start + step) == start + step)
      }
    }
    #expect(try bench.attach(b, other, 0..<piece).received == piece)
    bench.clock.advance(by: .seconds(61))
    try upload(a, from: 0, to: value.count)
    bench.clock.advance(by: .seconds(30))
    try upload(c, from: 0, to: 24 << 20)
    // Now the first has to go, and then the second, but not while it goes on.
    #expect(failure { _ = try upload(c, 24 << 20..<28 << 20) } == .busy)
    #expect(try bench.attach(b, other, 0..<0).received == 0)
    #expect(try upload(a, 0..<0) == value.count)
    bench.clock.advance(by: .seconds(31))
    try upload(c, from: 24 << 20, to: 28 << 20)
    #expect(try upload(a, 0..<0) == 0)
    #expect(try upload(c, 0..<0) == 28 << 20)
  }

  @Test("an upload that nobody goes on with for a week goes when another one comes")
  func forgotten() throws {
    let bench = Bench()
    let value = content(300_000)
    _ = try bench.attach(Device(1), value, 0..<300_000)
    bench.clock.advance(by: .seconds(8 * 86_400))
    #expect(try bench.attach(Device(2), value, 0..<piece).received == piece)
    #expect(try bench.attach(Device(1), value, 0..<0).received == 0)
  }

  @Test("a caller that asks for them gets large values by name, and reads them part by part")
  func downloads() throws {
    let bench = Bench()
    var a = Device(1)
    let b = Device(2)
    let value = content(300_000)
    var change = a.put("photo", "")
    change.content.value = value
    _ = try bench.push(&a, a.put("small", "1"), change)
    let page = try bench.handler().pull(
      PullRequest(
        replica: b.id, after: .beginning, limits: SyncLimits(bytes: 512 << 10), takesBlobs: true))
    let names: [AttachmentReference?] = [nil, .of(value)]
    #expect(page.entries.map(\.content.blob) == names)
    let large = try #require(page.entries.last)
    #expect(large.content.value.isEmpty)
    let question = ValuesRequest(replica: b.id, keys: [Array("photo".utf8)], takesBlobs: true)
    #expect(try bench.handler().values(question).entries.first?.content.blob == names[1])
    var read: [UInt8] = []
    while true {
      let part = try bench.handler().fetch(
        ContentRequest(
          replica: b.id, key: large.key, attachment: SyncContent.name(of: value),
          offset: read.count, limit: 70_000, position: large.position))
      let bytes = try #require(part.bytes)
      if bytes.isEmpty { break }
      read += bytes
    }
    #expect(read == value)
  }

  @Test("a download reaches no further than a pull, and says when something else is there")
  func access() throws {
    let bench = Bench()
    var a = Device(1)
    let value = content(300_000)
    var change = a.put("secret", "", labels: ["them"])
    change.content.value = value
    _ = try bench.push(&a, change)
    let position = try #require(try bench.pullAll(Device(2)).entries.first).position
    func download(_ offset: UInt64, _ access: SyncAccess = .everything) throws -> PeerError.Kind? {
      failure {
        _ = try bench.handler().fetch(
          ContentRequest(
            replica: Device(2).id, key: Array("secret".utf8),
            attachment: SyncContent.name(of: value), offset: 0, limit: 100,
            position: FeedPosition(epoch: position.epoch, offset: offset)), access: access)
      }
    }
    #expect(try download(position.offset) == nil)
    #expect(try download(position.offset, SyncAccess(to: SyncScope(labels: ["me"]))) == .busy)
    #expect(try download(position.offset + 1) == .busy)
    #expect(try download(1 << 40) == .busy)
    #expect(try download(0) == .busy)
    // Without a position it is an attachment, of which the key's entry has none.
    let none = ContentRequest(
      replica: Device(2).id, key: Array("secret".utf8), attachment: SyncContent.name(of: value),
      offset: 0, limit: 100)
    #expect(try bench.handler().fetch(none).bytes == nil)
    _ = try bench.push(&a, a.put("secret", "2", base: .operation(sequence: 1)))
    try bench.withEngine { try $0.compact(CompactionOptions(dropHistory: true)) }
    #expect(try download(position.offset) == .busy)
    let reader = SyncAccess(to: nil, canPush: false)
    #expect(
      failure {
        _ = try bench.attach(a, value, 0..<300_000, access: reader)
      } == .forbidden)
  }

  @Test("names of values that make no sense are refused")
  func hostile() throws {
    let bench = Bench()
    var a = Device(1)
    _ = try bench.handler().hello(HelloRequest(replica: a.id))
    a.number = 1
    var change = a.put("photo", "")
    func kind(_ length: Int, hash: Int = 32) -> PeerError.Kind? {
      change.content.blob = AttachmentReference(
        sha256: [UInt8](repeating: 1, count: hash), length: length)
      return failure { _ = try bench.handler().push(a.batch([change])) }
    }
    #expect(kind(300_000) == .busy && kind(64 << 20) == .busy)
    #expect(kind(256 << 10) == .malformed && kind((64 << 20) + 1) == .malformed)
    #expect(kind(-1) == .malformed && kind(.max) == .malformed && kind(.min) == .malformed)
    #expect(kind(300_000, hash: 31) == .malformed)
  }

  @Test("a large value whose change never comes goes after a week, whoever opens the database")
  func abandoned() throws {
    let bench = Bench(restarts: true)
    let a = Device(1)
    let value = content(300_000)
    func parts() throws -> Int { try bench.feed().uploads.uploads.withLock { $0.count } }
    _ = try bench.attach(a, value, 0..<piece)
    bench.clock.advance(by: .seconds(6 * 86_400))
    _ = try bench.attach(a, value, piece..<300_000)
    bench.clock.advance(by: .seconds(6 * 86_400))
    try bench.handler().compact()
    #expect(try parts() == 1)
    bench.clock.advance(by: .seconds(2 * 86_400))
    try bench.handler().compact()
    #expect(try parts() == 0)
    #expect(try bench.attach(a, value, 0..<0).received == 0)
  }

  @Test("calls that hold large values wait for each other beyond a bound, one by itself does not")
  func together() throws {
    let room = LargeValues(most: 100)
    let value = try room.withRoom(for: 1_000) { () throws in
      #expect(failure { try room.withRoom(for: 1) {} } == .busy)
      return 7
    }
    #expect(value == 7)
    try room.withRoom(for: 60) { () throws in
      try room.withRoom(for: 40) { () throws in
        #expect(failure { try room.withRoom(for: 1) {} } == .busy)
        try room.withRoom(for: 0) {}
      }
      try room.withRoom(for: 40) {}
    }
  }

  @Test("a large value of a key out of reach is not taken, and the verdict on it needs none")
  func outOfReach() throws {
    let bench = Bench()
    var a = Device(1)
    let access = SyncAccess(to: SyncScope(keyPrefixes: ["mine/"]))
    let value = content(300_000)
    let request = AttachRequest(
      replica: a.id, key: Array("photo".utf8), attachment: .of(value), offset: 0, bytes: [])
    let answer = try bench.handler().attach(request, access: access)
    #expect(answer.rejection?.code == "outOfScope")
    let (photo, note) = (put(&a, "photo", value), a.put("mine/1", "1"))
    let verdicts = try bench.push(&a, photo, note, access: access)
    #expect(verdicts.map(\.name) == ["outOfScope", "applied"])
  }

  @Test("a value beyond the limit is refused, and one at the limit fits beside a pending change")
  func largest() throws {
    let bench = Bench()
    var a = Device(1)
    var change = a.put("film", "")
    change.content.value = [UInt8](repeating: 7, count: Limits.valueBytes + 1)
    #expect(try bench.push(&a, change).map(\.name) == ["invalid"])
    change = a.put("film", "")
    change.content.value = [UInt8](repeating: 7, count: Limits.valueBytes)
    #expect(try bench.push(&a, change).map(\.name) == ["applied"])
    // With all labels that there can be, it fits into a record.
    let labels = (0..<64).map { EntryLabel([UInt8](repeating: 200, count: 254) + [UInt8($0)]) }
    let state = RemoteState(
      FeedEntry(
        position: FeedPosition(epoch: .max, offset: .max), kind: .put,
        operation: OperationID(replica: a.id, sequence: .max), key: [1],
        content: SyncContent(value: change.content.value, labels: labels), commitTime: .max))
    #expect(try state.encoded().count <= Limits.recordBytes)
  }
}
