import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Large values that travel apart")
struct BlobTests {
  /// Differs with `seed`, and does not compress away.
  private func value(_ count: Int = 300_000, _ seed: UInt64 = 1) -> [UInt8] {
    var random = SeededGenerator(seed: seed)
    return random.bytes(count)
  }

  private func upload(
    _ bench: Bench, _ device: Device, _ value: [UInt8], _ range: Range<Int>
  ) throws -> Int {
    try bench.upload(
      UploadRequest(
        replica: device.id, blob: BlobID(of: value), offset: range.lowerBound,
        bytes: Array(value[range]))
    ).received
  }

  private func put(_ device: inout Device, _ key: String, _ value: [UInt8]) -> PushedChange {
    var change = device.put(key, "")
    change.content = SyncContent(blob: BlobID(of: value))
    return change
  }

  @Test("parts become the value of the change that names it, and go", arguments: [false, true])
  func parts(restarts: Bool) throws {
    let bench = Bench(restarts: restarts)
    var a = Device(1)
    let value = value()
    #expect(try upload(bench, a, value, 0..<0) == 0)
    #expect(try upload(bench, a, value, 0..<100_000) == 100_000)
    // A part that came twice, one that overlaps, and one behind a gap.
    #expect(try upload(bench, a, value, 0..<100_000) == 100_000)
    #expect(try upload(bench, a, value, 50_000..<170_000) == 170_000)
    #expect(try upload(bench, a, value, 200_000..<300_000) == 170_000)
    #expect(try upload(bench, a, value, 150_000..<300_000) == 300_000)
    let change = put(&a, "photo", value)
    let verdicts = try bench.push(&a, a.put("first", "1"), change, a.put("last", "1"))
    #expect(verdicts.map(\.name) == ["applied", "applied", "applied"])
    let offsets = verdicts.compactMap { $0.place?.offset }
    #expect(offsets == [offsets[0], offsets[0] + 1, offsets[0] + 2])
    let entries = try bench.pullAll(Device(2)).entries
    #expect(entries.map(\.content.value) == [Array("1".utf8), value, Array("1".utf8)])
    #expect(try upload(bench, a, value, 0..<0) == 0)
    try bench.withEngine { engine in
      let records = try RecordTable(engine)
      #expect(records.keys(of: .feedUpload).isEmpty)
    }
  }

  @Test("a batch whose value is not there as a whole changes nothing, and counts once it is")
  func incomplete() throws {
    let bench = Bench()
    var a = Device(1)
    var b = Device(2)
    let value = value()
    _ = try bench.push(&a, a.put("k", "1"))
    _ = try upload(bench, a, value, 0..<200_000)
    // Somebody else's upload is nobody's business.
    _ = try bench.push(&b, b.put("l", "1"))
    _ = try upload(bench, b, value, 0..<300_000)
    a.number += 1
    let batch = a.batch([put(&a, "photo", value)])
    #expect(failure { _ = try bench.handler().push(batch) } == .busy)
    #expect(try bench.value("photo") == nil)
    #expect(try upload(bench, a, value, 200_000..<300_000) == 300_000)
    let answer = try bench.handler().push(batch)
    #expect(answer.mark.verdicts.map(\.name) == ["applied"])
    // Sent again, it needs no value.
    #expect(try bench.handler().push(batch).mark == answer.mark)
  }

  @Test("a value that is not what its name says is refused, and can be uploaded again")
  func anotherValue() throws {
    let bench = Bench()
    var a = Device(1)
    let value = value()
    let wrong = self.value(300_000, 2)
    _ = try bench.push(&a, a.put("k", "1"))
    let request = UploadRequest(
      replica: a.id, blob: BlobID(of: value), offset: 0, bytes: wrong)
    #expect(try bench.upload(request).received == 300_000)
    a.number += 1
    let batch = a.batch([put(&a, "photo", value)])
    #expect(failure { _ = try bench.handler().push(batch) } == .malformed)
    #expect(try upload(bench, a, value, 0..<300_000) == 300_000)
    #expect(try bench.handler().push(batch).mark.verdicts.map(\.name) == ["applied"])
  }

  @Test("an uploaded part is there after the power was cut at any call")
  func crash() throws {
    let bench = Bench()
    bench.disk.keepsCrashPoints = true
    let a = Device(1)
    let value = value()
    var moments: [(disk: DiskSnapshot, received: Int)] = []
    var received = 0
    for end in [70_000, 150_000, 300_000] {
      let next = try upload(bench, a, value, received..<end)
      moments += bench.disk.takeCrashPoints().map { ($0, received) }
      received = next
    }
    #expect(moments.count > 5)
    for (call, moment) in moments.enumerated() {
      for survival in Survival.sweep(seed: UInt64(call), randoms: 1) {
        let disk = SimulatedFileSystem(moment.disk, keeping: survival, seed: 7)
        var again = Device(1)
        let restored = Bench(disk: disk, openings: 10)
        let kept = try upload(restored, again, value, 0..<0)
        #expect(kept >= moment.received, "call \(call), \(survival)")
        #expect(try upload(restored, again, value, kept..<300_000) == 300_000)
        let change = put(&again, "photo", value)
        #expect(try restored.push(&again, change).map(\.name) == ["applied"])
      }
    }
  }

  @Test("where there is no room the upload goes that has waited longest, and none that goes on")
  func room() throws {
    // The room of one batch, and no more.
    let bench = Bench(options: SyncHandler.Options(uploadBytes: 0))
    let value = value(40 << 20)
    let other = self.value(1 << 20, 2)
    let (a, b, c) = (Device(1), Device(2), Device(3))
    let step = 4 << 20
    func upload(_ device: Device, from first: Int, to end: Int) throws {
      for start in stride(from: first, to: end, by: step) {
        #expect(try self.upload(bench, device, value, start..<start + step) == start + step)
      }
    }
    #expect(try self.upload(bench, b, other, 0..<100_000) == 100_000)
    bench.clock.advance(by: .seconds(61))
    try upload(a, from: 0, to: value.count)
    bench.clock.advance(by: .seconds(30))
    try upload(c, from: 0, to: 24 << 20)
    // Now the first has to go, and then the second, but not while it goes on.
    #expect(
      failure { _ = try self.upload(bench, c, value, 24 << 20..<28 << 20) } == .busy)
    #expect(try self.upload(bench, b, other, 0..<0) == 0)
    #expect(try self.upload(bench, a, value, 0..<0) == value.count)
    bench.clock.advance(by: .seconds(31))
    try upload(c, from: 24 << 20, to: 28 << 20)
    #expect(try self.upload(bench, a, value, 0..<0) == 0)
    #expect(try self.upload(bench, c, value, 0..<0) == 28 << 20)
  }

  @Test("an upload that nobody goes on with for a week goes when another one comes")
  func forgotten() throws {
    let bench = Bench()
    let value = value()
    #expect(try upload(bench, Device(1), value, 0..<100_000) == 100_000)
    bench.clock.advance(by: .seconds(8 * 86_400))
    #expect(try upload(bench, Device(2), value, 0..<100_000) == 100_000)
    #expect(try upload(bench, Device(1), value, 0..<0) == 0)
  }

  @Test("a part is never short where more follows, whatever was sent before")
  func slivers() throws {
    let bench = Bench()
    let a = Device(1)
    let value = value()
    #expect(try upload(bench, a, value, 0..<100_000) == 100_000)
    #expect(try upload(bench, a, value, 34_465..<100_001) == 100_000)
    #expect(try upload(bench, a, value, 100_000..<299_999) == 299_999)
    #expect(try upload(bench, a, value, 234_463..<300_000) == 300_000)
  }

  @Test("an upload that was let go takes no space once the log is compacted")
  func space() throws {
    let bench = Bench()
    let step = 4 << 20
    // More than a compaction looks at together.
    for round in 0..<6 {
      let value = value(3 * step, UInt64(round))
      for start in stride(from: 0, to: value.count, by: step) {
        _ = try upload(bench, Device(1), value, start..<start + step)
      }
      bench.clock.advance(by: .seconds(8 * 86_400))
    }
    let last = value(300_000, 9)
    #expect(try upload(bench, Device(2), last, 0..<100_000) == 100_000)
    #expect(try bench.handler().space().log > 64 << 20)
    try bench.handler().compact()
    #expect(try bench.handler().space().log < 1 << 20)
    try bench.close()
    #expect(try upload(bench, Device(2), last, 0..<0) == 100_000)
    #expect(try upload(bench, Device(2), last, 100_000..<300_000) == 300_000)
  }

  @Test("a caller that asks for them gets large values by name, and reads them part by part")
  func downloads() throws {
    let bench = Bench()
    var a = Device(1)
    let b = Device(2)
    let value = value()
    var change = a.put("photo", "")
    change.content.value = value
    _ = try bench.push(&a, a.put("small", "1"), change)
    let page = try bench.handler().pull(
      PullRequest(
        replica: b.id, after: .beginning, limits: SyncLimits(bytes: 512 << 10), takesBlobs: true))
    let names: [BlobID?] = [nil, BlobID(of: value)]
    #expect(page.entries.map(\.content.blob) == names)
    let large = try #require(page.entries.last)
    #expect(large.content.value.isEmpty)
    let question = ValuesRequest(replica: b.id, keys: [Array("photo".utf8)], takesBlobs: true)
    #expect(try bench.handler().values(question).entries.first?.content.blob == names[1])
    var read: [UInt8] = []
    while true {
      let part = try bench.download(
        DownloadRequest(
          replica: b.id, position: large.position, offset: read.count, limit: 70_000))
      #expect(part.length == value.count)
      if part.bytes.isEmpty { break }
      read += part.bytes
    }
    #expect(read == value)
  }

  @Test("a download reaches no further than a pull, and says when something else is there")
  func access() throws {
    let bench = Bench()
    var a = Device(1)
    let value = value()
    var change = a.put("secret", "", labels: ["them"])
    change.content.value = value
    _ = try bench.push(&a, change)
    let position = try #require(try bench.pullAll(Device(2)).entries.first).position
    func download(_ offset: UInt64, _ access: SyncAccess = .everything) throws -> PeerError.Kind? {
      failure {
        _ = try bench.download(
          DownloadRequest(
            replica: Device(2).id, position: Position(epoch: position.epoch, offset: offset),
            offset: 0, limit: 100), access: access)
      }
    }
    #expect(try download(position.offset) == nil)
    #expect(try download(position.offset, SyncAccess(to: SyncScope(labels: ["me"]))) == .busy)
    #expect(try download(position.offset + 1) == .busy)
    #expect(try download(1 << 40) == .busy)
    #expect(try download(0) == .busy)
    _ = try bench.push(&a, a.put("secret", "2", base: .operation(sequence: 1)))
    try bench.withEngine { try $0.compact(CompactionOptions(dropHistory: true)) }
    #expect(try download(position.offset) == .busy)
    let reader = SyncAccess(to: nil, canPush: false)
    #expect(
      failure {
        _ = try bench.upload(
          UploadRequest(replica: a.id, blob: BlobID(of: value), offset: 0, bytes: value),
          access: reader)
      } == .forbidden)
  }

  @Test("parts and names that make no sense are refused")
  func hostile() throws {
    let bench = Bench()
    let a = Device(1)
    func refuses(_ length: Int, _ offset: Int, _ count: Int) -> Bool {
      let bytes = [UInt8](repeating: 0, count: count)
      let request = UploadRequest(
        replica: a.id, blob: BlobID(low: 1, high: 2, length: length), offset: offset, bytes: bytes)
      return failure { _ = try bench.upload(request) } == .malformed
    }
    #expect(!refuses(300_000, 0, 65_536) && !refuses(300_000, 299_999, 1))
    #expect(refuses(300_000, 0, 65_535) && refuses(300_000, 299_999, 2))
    #expect(refuses(256 << 10, 0, 65_536) && refuses((64 << 20) + 1, 0, 65_536))
    #expect(refuses(-1, 0, 0) && refuses(.max, 0, 0) && refuses(300_000, -1, 65_536))
    #expect(refuses(300_000, .max, 65_536) && refuses(300_000, .min, 0))
  }

  @Test("a large value whose change never comes goes after a week, whoever opens the database")
  func abandoned() throws {
    let bench = Bench(restarts: true)
    let a = Device(1)
    let value = value()
    func parts() throws -> Int { try bench.handler().feed.recordKeys(of: .feedUpload).count }
    _ = try upload(bench, a, value, 0..<100_000)
    bench.clock.advance(by: .seconds(6 * 86_400))
    _ = try upload(bench, a, value, 100_000..<200_000)
    bench.clock.advance(by: .seconds(6 * 86_400))
    try bench.handler().compact()
    #expect(try parts() == 2)
    bench.clock.advance(by: .seconds(2 * 86_400))
    try bench.handler().compact()
    #expect(try parts() == 0)
    #expect(try upload(bench, a, value, 0..<0) == 0)
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

  @Test("a value that no replica could keep beside a pending change is refused, and nothing else")
  func tooLargeToReplicate() throws {
    let bench = Bench()
    var a = Device(1)
    var change = a.put("film", "")
    change.content.value = [UInt8](repeating: 7, count: ChangeCheck.valueBytes + 1)
    #expect(try bench.push(&a, change).map(\.name) == ["invalid"])
    change = a.put("film", "")
    change.content.value = [UInt8](repeating: 7, count: ChangeCheck.valueBytes)
    #expect(try bench.push(&a, change).map(\.name) == ["applied"])
    // With all labels that there can be, it fits into a record.
    let labels = (0..<64).map { EntryLabel([UInt8](repeating: 200, count: 254) + [UInt8($0)]) }
    let state = RemoteState(
      FeedEntry(
        position: Position(epoch: .max, offset: .max), kind: .put,
        operation: OperationID(replica: a.id, sequence: .max), key: [1],
        content: SyncContent(value: change.content.value, labels: labels), commitTime: .max))
    #expect(try state.encoded().count <= Limits.valueBytes)
  }
}
