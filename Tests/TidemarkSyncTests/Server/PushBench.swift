import Foundation
import Testing
import Tidemark
import TidemarkEngine

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

/// How many pushes of one entry a database takes, beside what its engine takes:
/// `TIDEMARK_BENCH=1 swift test -c release -Xswiftc -enable-testing --filter PushBench`.
@Suite(
  "Speed of small pushes",
  .enabled(if: ProcessInfo.processInfo.environment["TIDEMARK_BENCH"] == "1"))
struct PushBench {
  /// How often in a second threads get through a call that each of them makes again and again.
  private func rate(
    _ threads: Int, _ body: @escaping @Sendable (Int, UInt64) throws -> Void
  ) -> Double {
    let calls = Lock<UInt64>(0)
    let done = DispatchSemaphore(value: 0)
    let seconds = 4.0
    let end = Date() + seconds
    for index in 0..<threads {
      let thread = Thread {
        var number: UInt64 = 0
        while Date() < end {
          number += 1
          do { try body(index, number) } catch {
            Issue.record(error)
            break
          }
        }
        calls.withLock { $0 += number }
        done.signal()
      }
      thread.start()
    }
    for _ in 0..<threads { done.wait() }
    return Double(calls.withLock { $0 }) / seconds
  }

  private func inDirectory<R>(_ body: (String) throws -> R) throws -> R {
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("tidemark-bench-\(UUID())").path
    defer { try? FileManager.default.removeItem(atPath: directory) }
    return try body(directory)
  }

  private func push(_ handler: SyncHandler, _ index: Int, _ number: UInt64) throws {
    let change = PushedChange(
      sequence: number, kind: .put, key: Array("key/\(index)/\(number)".utf8),
      content: SyncContent(value: Array("value \(number)".utf8)), commitTime: number << 16)
    let request = PushRequest(
      replica: Device(UInt8(index + 1)).id, number: number, batchID: BatchID(number),
      changes: [change])
    #expect(try handler.push(request).mark.number == number)
  }

  private func pushes(_ clients: Int, isSerial: Bool) throws -> Double {
    try inDirectory { directory in
      let handler = try SyncHandler(at: directory)
      for index in 0..<clients {
        _ = try handler.hello(HelloRequest(replica: Device(UInt8(index + 1)).id))
      }
      let turn = NSLock()
      let rate = rate(clients) { index, number in
        if isSerial { turn.lock() }
        defer { if isSerial { turn.unlock() } }
        try push(handler, index, number)
      }
      try handler.close()
      return rate
    }
  }

  private func commits(_ writers: Int) throws -> Double {
    try inDirectory { directory in
      let store = try Store.openBlocking(
        at: directory, configuration: Store.Configuration(access: .create))
      let engine = store.engine
      let rate = rate(writers) { index, number in
        var batch = OperationBatch()
        try batch.add(
          .put, key: Array("key/\(index)/\(number)".utf8).rawSpan,
          value: Array("value \(number)".utf8).rawSpan)
        try engine.commit(batch, durability: .durable)
      }
      try store.blocking.close()
      return rate
    }
  }

  @Test("pushes beside durable commits", arguments: [1, 4, 16])
  func speed(clients: Int) throws {
    let engine = try commits(clients)
    let shared = try pushes(clients, isSerial: false)
    let serial = try pushes(clients, isSerial: true)
    func text(_ rate: Double) -> String {
      "\(Int(rate))/s, \((rate / engine * 100).rounded() / 100) of the engine"
    }
    print(
      "\(clients) clients: engine \(Int(engine))/s; pushes \(text(shared)); "
        + "one after the other \(text(serial))")
  }
}
