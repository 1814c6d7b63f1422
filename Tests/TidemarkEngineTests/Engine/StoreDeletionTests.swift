import TidemarkEngine
import TidemarkTestKit
import Testing

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif

@Suite("Deleting a store")
struct StoreDeletionTests {
  private let disk = SimulatedFileSystem()
  private var environment: EngineEnvironment { EngineEnvironment(fileSystem: disk) }

  private func makeStore() throws {
    let engine = try Engine.open(
      "/s", configuration: EngineConfiguration(), environment: environment)
    for key in 0..<10 { try engine.put("k\(key)", "value \(key)") }
    try engine.checkpointer.writeRun()
    try engine.close()
  }

  /// The code of the error with which a deletion fails; nil when it succeeds.
  private func failure(_ path: String = "/s") -> TidemarkError.Code? {
    do {
      try Engine.delete(path, environment: environment)
      return nil
    } catch { return error.code }
  }

  @Test("a deleted store leaves neither files nor its directory")
  func everything() throws {
    try makeStore()
    try Engine.delete("/s", environment: environment)
    #expect(try disk.kind("/s") == nil)
    #expect(failure() == .storeMissing)
  }

  @Test("a store that is open for writing is not deleted")
  func locked() throws {
    let engine = try Engine.open(
      "/s", configuration: EngineConfiguration(), environment: environment)
    try engine.put("k", "v")
    #expect(failure() == .locked)
    #expect(try engine.get("k") == "v")
    try engine.close()
  }

  @Test("a directory that is no store stays as it is")
  func stranger() throws {
    try disk.createDirectory("/d")
    #expect(failure("/d") == .notAStore)
    try disk.open("/d/notes.txt", .create).close()
    try disk.createDirectory("/d/log")
    #expect(failure("/d") == .notAStore)
    #expect(try disk.list("/d") == ["log", "notes.txt"])
  }

  @Test("files of somebody else stay, and the directory with them")
  func strangersFile() throws {
    try makeStore()
    try disk.open("/s/notes.txt", .create).close()
    try Engine.delete("/s", environment: environment)
    #expect(try disk.list("/s") == ["notes.txt"])
  }

  @Test("a deletion that stopped at any call can be repeated")
  func interrupted() throws {
    for call in 1..<60 {
      try? Engine.delete("/s", environment: environment)
      try makeStore()
      disk.plan = [FaultRule(.error(.EIO), .call(call), calls: .mutating)]
      let failed = failure()
      disk.plan = []
      if failed == nil { return #expect(call > 8, "the faults hit \(call) calls") }
      // Once the lock is gone, only an empty directory can be left.
      let again = failure()
      let isEmpty = try again == .notAStore && disk.list("/s") == []
      #expect(again == nil || again == .storeMissing || isEmpty, "call \(call): \(again!)")
      if isEmpty { try disk.remove("/s") }
      #expect(try disk.kind("/s") == nil, "call \(call)")
    }
    Issue.record("no deletion ran to its end")
  }

  @Test("symbolic links inside a hostile store are removed, and what they lead to stays")
  func links() throws {
    let base = "/tmp/tidemark-delete-\(UInt64.random(in: 0 ... .max))"
    let files = EngineEnvironment().fileSystem
    try files.createDirectory(base)
    try files.createDirectory(base + "/mine")
    try files.open(base + "/mine/letter", .create).close()
    let engine = try Engine.open(base + "/s", configuration: EngineConfiguration())
    try engine.put("k", "v")
    try engine.close()
    #expect(symlink(base + "/mine", base + "/s/attachments") == 0)
    #expect(symlink(base + "/mine", base + "/s/log/more") == 0)
    try Engine.delete(base + "/s")
    #expect(try files.list(base) == ["mine"])
    #expect(try files.list(base + "/mine") == ["letter"])
    try files.remove(base + "/mine/letter")
    try files.remove(base + "/mine")
    try files.remove(base)
  }
}
