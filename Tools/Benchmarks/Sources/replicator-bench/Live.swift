import ArgumentParser
import Foundation
import Tidemark
import TidemarkSync

/// The cost of what is synced as it is written, of conflicts, of local writes and of a new device.
struct Live: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "The cost of edits that are synced one by one, of conflicts and of a new device.",
    discussion: """
      Server and devices are stores in this process. Bytes are those of the device's log, with \
      what is added where a segment is sealed; processor time is that of device and server \
      together.
      """)

  @Option(help: "Up to which edits their cost is told, separated by commas, ascending.")
  var edits = "1000,10000,100000"

  @Option(help: "How many keys are in conflict.")
  var conflicts = 4_000

  @Option(help: "How many writes are made that are not to be sent.")
  var local = 100_000

  @Option(help: "Which parts: edits, conflicts, duplicates, idle, device.")
  var only = "edits,conflicts,duplicates,idle,device"

  @Option(help: "Where the stores are made; in memory the disk counts for nothing.")
  var directory =
    FileManager.default.fileExists(atPath: "/dev/shm")
    ? "/dev/shm" : NSTemporaryDirectory()

  private var steps: [Int] { edits.split(separator: ",").compactMap { Int($0) } }

  func validate() throws {
    guard !steps.isEmpty, steps == steps.sorted(), conflicts > 0, local > 0 else {
      throw ValidationError("--edits takes ascending numbers, the others at least 1")
    }
  }

  func run() async throws {
    let parts = Set(only.split(separator: ",").map(String.init))
    if parts.contains("edits") { try await inRoom { try await measureEdits($0) } }
    if parts.contains("conflicts") { try await inRoom { try await measureConflicts($0) } }
    if parts.contains("duplicates") { try await inRoom { try await measureDuplicates($0) } }
    if parts.contains("idle") { try await inRoom { try await measureIdle($0) } }
    if parts.contains("device") { try await inRoom { try await measureDevice($0) } }
  }

  private func inRoom(_ body: (Room) async throws -> Void) async throws {
    let room = try await Room(directory)
    do { try await body(room) } catch {
      await room.close()
      throw error
    }
    await room.close()
  }

  // MARK: Parts

  /// Edits of 12 bytes, each synced before the next one is made.
  private func measureEdits(_ room: Room) async throws {
    // Bytes that a compaction gives back would make an edit seem cheaper.
    let device = try await room.device("device", compaction: .onRequest)
    device.replicator.start()
    var made = 0
    for step in steps {
      let (from, bytes, processor) = (made, device.bytes, clock())
      while made < step {
        try await edit(made, device)
        made += 1
      }
      let count = Double(step - from)
      let used = Double(clock() - processor) / Double(CLOCKS_PER_SEC)
      print(
        "edits synced live, from \(from) to \(step), each:",
        "\(Self.rounded(Double(device.bytes - bytes) / count)) bytes of log,",
        "\(Self.rounded(used / count * 1e6)) us of processor")
    }
    await device.replicator.stop()
  }

  private func edit(_ number: Int, _ device: Device) async throws {
    let text = String(100_000_000_000 + number)
    let receipt = try await device.store.put("note/\(number % 1_000)", text)
    for wait in device.replicator.receipts(for: receipt) { _ = try await wait.outcome() }
  }

  /// Two devices have written the same keys, and the second one hears of it.
  private func measureConflicts(_ room: Room) async throws {
    let first = try await room.device("first")
    let second = try await room.device("second", resolver: .mergeFields())
    for (device, field) in [(first, "a"), (second, "b")] {
      for number in 0..<conflicts {
        try await device.store.put("note/\(number)", #"{"\#(field)":\#(number)}"#)
      }
    }
    _ = try await first.replicator.syncOnce()
    try await second.store.flush()
    let before = (bytes: second.bytes, calls: await second.peer.calls)
    let processor = clock()
    let report = try await second.replicator.syncOnce()
    let used = Double(clock() - processor) / Double(CLOCKS_PER_SEC)
    print(
      "\(report.conflicts) conflicts, \(report.merged) merged:",
      "\(second.bytes - before.bytes) bytes of log,",
      "\(await second.peer.calls - before.calls) calls, \(Self.rounded(used * 1e3)) ms of processor"
    )
  }

  /// Two devices have written the same, and the second one hears of it.
  private func measureDuplicates(_ room: Room) async throws {
    let devices = [try await room.device("first"), try await room.device("second")]
    for device in devices {
      for number in 0..<conflicts {
        try await device.store.put("note/\(number)", Self.text(number, 0))
      }
    }
    _ = try await devices[0].replicator.syncOnce()
    let before = devices[1].bytes
    _ = try await devices[1].replicator.syncOnce(deadline: nil)
    print("\(conflicts) keys that both wrote alike: \(devices[1].bytes - before) bytes of log")
    try await devices[1].store.compact()
    try await devices[0].store.compact()
    print("  a compaction leaves \(devices[1].bytes) in all, \(devices[0].bytes) at the first one")
  }

  /// Writes that are nobody else's business.
  private func measureIdle(_ room: Room) async throws {
    let device = try await room.device("device", scope: SyncScope(keyPrefixes: ["shared/"]))
    device.replicator.start()
    let receipt = try await device.store.put("shared/first", "text")
    for wait in device.replicator.receipts(for: receipt) { _ = try await wait.outcome() }
    try await Task.sleep(for: .milliseconds(300))
    let (calls, processor) = (await device.peer.calls, clock())
    for number in 0..<local {
      if number % 2 == 0 {
        try await device.store.put("local/\(number % 10_000)", "text \(number)")
      } else {
        try await device.store.put(
          "shared/\(number % 10_000)", "text \(number)", options: PutOptions(storageClass: .cache))
      }
    }
    let used = Double(clock() - processor) / Double(CLOCKS_PER_SEC)
    print(
      "\(local) writes that are not to be sent: \(await device.peer.calls - calls) calls,",
      "\(Self.rounded(used / Double(local) * 1e6)) us of processor a write")
    await device.replicator.stop()
  }

  /// A device that reads a database in which every key was written many times.
  private func measureDevice(_ room: Room) async throws {
    let writer = try await room.device("writer")
    for version in 0..<30 {
      for number in 0..<1_000 {
        try await writer.store.put("note/\(number)", Self.text(number, version))
      }
      _ = try await writer.replicator.syncOnce()
    }
    let device = try await room.device("device")
    _ = try await device.replicator.syncOnce()
    print(
      "a new device reads 1,000 keys of 30 versions:", "\(await device.peer.entries) entries,",
      "\(await device.peer.bytes) bytes of keys and values, \(await device.peer.calls) calls")
  }

  private static func text(_ number: Int, _ version: Int) -> String {
    "{\"id\":\(number),\"version\":\(version),\"text\":\"\(number &* 7_919 &+ version)\"}"
  }

  static func rounded(_ value: Double) -> String { "\((value * 100).rounded() / 100)" }
}
