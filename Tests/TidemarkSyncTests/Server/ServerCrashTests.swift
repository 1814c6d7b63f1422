import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("A server that dies in the middle of a push")
struct ServerCrashTests {
  private struct Moment {
    var disk: DiskSnapshot
    /// How many batches had been answered.
    var answered: Int
  }

  private func batches() -> (Device, [PushRequest]) {
    var device = Device(1)
    var requests: [PushRequest] = []
    for round in 0..<4 {
      device.number += 1
      let changes = (0..<5).map {
        device.put("k\(round)-\($0)", String(repeating: "v", count: 40 * round + $0))
      }
      // A chain on one key, which tells lost or doubled changes.
      let chain = device.put("chain", "\(round)")
      requests.append(device.batch(changes + [chain]))
    }
    return (device, requests)
  }

  /// The disk at every mutating call of pushing all batches, with closing in between.
  private func moments(_ device: Device, _ requests: [PushRequest]) throws -> [Moment] {
    let bench = Bench()
    bench.disk.keepsCrashPoints = true
    var moments: [Moment] = []
    func note(_ answered: Int) {
      moments += bench.disk.takeCrashPoints().map { Moment(disk: $0, answered: answered) }
    }
    _ = try bench.handler().hello(HelloRequest(replica: device.id))
    note(0)
    for (index, request) in requests.enumerated() {
      let answer = try bench.handler().push(request)
      #expect(answer.mark.verdicts.allSatisfy { $0.name == "applied" })
      note(index)
      if index == 1 {
        try bench.close()
        note(2)
      }
    }
    return moments
  }

  @Test("after recovery, and sending again what was not answered, every operation stands once")
  func everyCall() throws {
    let (device, requests) = batches()
    let moments = try moments(device, requests)
    #expect(moments.count > 20)
    for (call, moment) in moments.enumerated() {
      // Every call meets a kill and three of the survivals, the next call three others.
      let survivals = Survival.sweep(seed: UInt64(call), randoms: 1).enumerated().filter {
        $0.offset % 3 == call % 3
      }
      for survival in [nil] + survivals.map({ Optional.some($0.element) }) {
        let disk =
          survival.map { SimulatedFileSystem(moment.disk, keeping: $0, seed: 3) }
          ?? SimulatedFileSystem(killedAt: moment.disk, seed: 3)
        let comment: Comment = "call \(call), \(survival.map { "\($0)" } ?? "kill")"
        let bench = Bench(disk: disk, openings: UInt64(10 + call))
        let hello = try bench.handler().hello(HelloRequest(replica: device.id))
        #expect(hello.mark.number >= UInt64(moment.answered), comment)
        for request in requests where request.number > hello.mark.number {
          let answer = try bench.handler().push(request)
          #expect(answer.mark.number == request.number, comment)
          #expect(answer.mark.batchID == request.batchID, comment)
          #expect(answer.mark.verdicts.allSatisfy { $0.name == "applied" }, comment)
        }
        // The batch that was in flight is answered as taken, too.
        let last = requests[requests.count - 1]
        #expect(try bench.handler().push(last).mark.verdicts.count == 6, comment)
        try expectOnce(bench, requests, comment)
      }
    }
  }

  private func expectOnce(
    _ bench: Bench, _ requests: [PushRequest], _ comment: Comment
  ) throws {
    let sequences = try bench.pullAll(Device(9), everyVersion: true).entries.map(
      \.operation.sequence)
    #expect(sequences == requests.flatMap { $0.changes.map(\.sequence) }, comment)
    try bench.close()
    let again = try bench.pullAll(Device(9), everyVersion: true).entries.map(\.operation.sequence)
    #expect(again == sequences, comment)
    try bench.close()
  }

  @Test("when writing fails the outcome is unknown, and the next opening tells it")
  func failingDisk() throws {
    let (device, requests) = batches()
    for call in 1...6 {
      let bench = Bench()
      _ = try bench.handler().hello(HelloRequest(replica: device.id))
      _ = try bench.handler().push(requests[0])
      bench.disk.plan = .error(.EIO, atCall: call, of: [.write, .sync], sticky: true)
      let kind = failure {
        for request in requests.dropFirst() { _ = try bench.handler().push(request) }
      }
      if let kind { #expect(kind == .unavailable, "call \(call)") }
      bench.disk.plan = .none
      bench.abandon()
      bench.disk.kill()
      bench.disk.restart()
      let hello = try bench.handler().hello(HelloRequest(replica: device.id))
      for request in requests where request.number > hello.mark.number {
        _ = try bench.handler().push(request)
      }
      try expectOnce(bench, requests, "call \(call)")
    }
  }
}
