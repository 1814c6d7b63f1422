import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Answers and the disk")
struct SettlingTests {
  private let reader = Device(9)

  /// A bench whose disk loses everything that was not synced when the power is cut.
  private func makeBench(_ devices: [Device]) throws -> Bench {
    let bench = Bench()
    for device in devices + [reader] {
      _ = try bench.handler().hello(HelloRequest(replica: device.id))
    }
    return bench
  }

  private func cutPower(_ bench: Bench) {
    bench.disk.powerCut()
    bench.abandon()
    bench.disk.restart(keeping: .loseAll)
  }

  /// Appends a device's next batch, and does not wait for the disk.
  private func stage(
    _ bench: Bench, _ device: inout Device, _ key: String
  ) throws -> (PushRequest, StagedAnswer) {
    device.number += 1
    let request = device.batch([device.put(key, "v")])
    return (request, try bench.handler().stage(.pushRequest(request)))
  }

  @Test(
    "a batch that is not on the disk yet is told of by no call, until a sync has put it there",
    arguments: ["pull", "own pull", "values", "digest", "hello", "push"])
  func told(call: String) throws {
    var writer = Device(1)
    let bench = try makeBench([writer])
    let (request, staged) = try stage(bench, &writer, "k")
    #expect(try !bench.handler().isSettled(staged))
    let isTold: Bool =
      switch call {
      case "pull": try bench.pullAll(reader).entries.map(\.key) == [Array("k".utf8)]
      case "own pull":
        try bench.handler().pull(PullRequest(replica: writer.id, after: .beginning)).mark.number
          == 1
      case "values": try bench.value("k") == "v"
      case "digest":
        try bench.handler().digest(DigestRequest(replica: reader.id)).parts[0].total.keys == 1
      case "hello": try bench.handler().hello(HelloRequest(replica: writer.id)).mark.number == 1
      default: try bench.handler().push(request).mark.number == 1
      }
    #expect(isTold)
    cutPower(bench)
    let kept = try bench.look(at: writer.id).mark.mark
    #expect(kept.number == 1, "\(call) told of a lost batch")
    #expect(try bench.value("k") == "v")
  }

  @Test("a batch whose answer has not gone out may be lost, and is taken when it comes again")
  func lost() throws {
    var writer = Device(1)
    let bench = try makeBench([writer])
    let (request, _) = try stage(bench, &writer, "k")
    cutPower(bench)
    #expect(try bench.handler().hello(HelloRequest(replica: writer.id)).mark.number == 0)
    #expect(try bench.handler().push(request).mark.verdicts.map(\.name) == ["applied"])
    #expect(try bench.pullAll(reader).entries.count == 1)
  }

  @Test("pushes that wait share one sync, and stand in the order in which they were judged")
  func shared() throws {
    var writers = (1...8).map { Device(UInt8($0)) }
    let bench = try makeBench(writers)
    let before = bench.disk.calls(of: .sync)
    var answers: [StagedAnswer] = []
    for index in writers.indices {
      answers.append(try stage(bench, &writers[index], "k\(index)").1)
    }
    #expect(bench.disk.calls(of: .sync) == before)
    // The last one first: its sync is one for all.
    for answer in answers.reversed() { try bench.handler().settle(answer) }
    #expect(bench.disk.calls(of: .sync) == before + 1)
    #expect(try answers.allSatisfy { try bench.handler().isSettled($0) })
    cutPower(bench)
    let keys = try bench.pullAll(reader).entries.map { String(decoding: $0.key, as: UTF8.self) }
    #expect(keys == (0..<8).map { "k\($0)" })
  }

  @Test("a sync that fails fails every push that depended on it, and a batch that is sent again")
  func failing() throws {
    var writers = [Device(1), Device(2)]
    let bench = try makeBench(writers)
    let (first, one) = try stage(bench, &writers[0], "a")
    let (_, two) = try stage(bench, &writers[1], "b")
    bench.disk.plan = .error(.EIO, atCall: 1, of: [.sync], sticky: false)
    #expect(failure { try bench.handler().settle(one) } == .unavailable)
    bench.disk.plan = .none
    // The disk works again, but nobody knows what it has.
    #expect(failure { try bench.handler().settle(two) } == .unavailable)
    #expect(failure { _ = try bench.handler().push(first) } == .unavailable)
    #expect(
      failure { _ = try bench.handler().pull(PullRequest(replica: reader.id, after: .beginning)) }
        == .unavailable)
    cutPower(bench)
    #expect(try bench.handler().hello(HelloRequest(replica: writers[0].id)).mark.number == 0)
    #expect(try bench.handler().push(first).mark.number == 1)
  }

  @Test("a compaction keeps a replica's mark as long as the next one is not on the disk")
  func marks() throws {
    var writer = Device(1)
    let bench = try makeBench([writer])
    _ = try bench.push(&writer, writer.put("a", "1"))
    let handler = try bench.handler()
    let pushing = Lock(writer)
    let request = Lock<PushRequest?>(nil)
    try handler.compact {
      pushing.withLock { writer in
        guard request.withLock({ $0 == nil }) else { return }
        writer.number += 1
        let next = writer.batch([writer.put("b", "2")])
        request.withLock { $0 = next }
        #expect(throws: Never.self) { _ = try handler.stage(.pushRequest(next)) }
      }
      return false
    }
    let next = try #require(request.withLock { $0 })
    cutPower(bench)
    #expect(try bench.handler().hello(HelloRequest(replica: writer.id)).mark.number == 1)
    #expect(try bench.handler().push(next).mark.number == 2)
    #expect(try bench.pullAll(reader).entries.count == 2)
  }
}
