import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("A directory or LOCK that is not the one that was opened")
struct LostLockTests {
  enum Loss: String, CaseIterable, Sendable {
    case lockRemoved, lockReplaced, directoryMoved, directoryReplaced

    /// Does it to the store at a path.
    func happen(to path: String, _ fileSystem: any FileSystem) throws {
      let lock = path + "/" + StoreLayout.lock
      switch self {
      case .lockRemoved: try fileSystem.remove(lock)
      case .lockReplaced:
        try fileSystem.remove(lock)
        try fileSystem.open(lock, .create).close()
      case .directoryMoved, .directoryReplaced:
        for name in try fileSystem.list(path) {
          let place = path + "/" + name
          guard try fileSystem.kind(place) == .directory else {
            try fileSystem.remove(place)
            continue
          }
          for inner in try fileSystem.list(place) { try fileSystem.remove(place + "/" + inner) }
          try fileSystem.remove(place)
        }
        try fileSystem.remove(path)
        guard self == .directoryReplaced else { return }
        var configuration = EngineConfiguration()
        configuration.doesBackgroundWorkInline = true
        try Engine.open(
          path, configuration: configuration, environment: StoreFiles.environment(fileSystem)
        ).close()
      }
    }
  }

  @Test(
    "a durable write fails, whichever way the store went, and whichever file system it is on",
    arguments: Loss.allCases, FileSystemTests.Kind.allCases)
  func durable(loss: Loss, kind: FileSystemTests.Kind) throws {
    // Behind a buffered put a sync is due already, so that the sync alone looks at the lock.
    for before in [nil, Durability.durable, .buffered] {
      try FileSystemTests.with(kind) { fileSystem, directory in
        let path = directory + "/store"
        let engine = try StoreFiles.open(fileSystem, .create, path: path)
        if let before { try engine.put("before", "1", durability: before) }
        try loss.happen(to: path, fileSystem)
        for _ in 0..<3 {
          #expect(throws: TidemarkError.self) {
            try engine.put("after", "2", labels: ["x"], durability: .durable)
          }
          #expect(throws: TidemarkError.self) {
            let result = try engine.stageSingle(
              .put, key: bytes("single").rawSpan, value: bytes("3").rawSpan, durability: .durable)
            if let result { try engine.writer.sync(through: result.lastSeen, of: result.epoch) }
          }
        }
        // Where not even a segment could be begun, there is nothing that a flush would promise.
        if before != nil { #expect(throws: TidemarkError.self) { try engine.writer.flush() } }
        try? engine.close()
      }
    }
  }

  @Test("a writer that has lost its LOCK leaves alone what another one writes")
  func another() throws {
    let store = TestStore()
    for mode in [Durability.durable, .buffered, .async] {
      let path = "/store"
      let first = try store.open()
      for number in 0..<5 { try first.put("first-\(number)", "1", durability: .durable) }
      try store.disk.remove(path + "/LOCK")
      let second = try Engine.open(
        path, configuration: store.configuration,
        environment: EngineEnvironment(
          fileSystem: store.disk.anotherProcess(), clock: store.clock,
          random: SeededRandom(seed: 9)))
      for number in 0..<50 { try second.put("second-\(number)", "2", durability: .durable) }
      var hasFailed = false
      do {
        try first.put("late", "3", durability: mode)
        try first.writer.flush()
      } catch { hasFailed = true }
      #expect(hasFailed, "\(mode)")
      try? first.close()
      try second.put("last", "4", durability: .durable)
      try second.close()
      let report = try StoreVerifier.verify(path, environment: store.environment())
      #expect(report.findings == [], "\(mode)")
      let again = try store.open(.readOnly)
      #expect(again.reader.liveKeys == 56)
      #expect(try ExpectedStore(again).value(bytes("late")) == nil)
      try again.close()
      for name in ["MANIFEST.0", "MANIFEST.1", "LOCK"] { try store.disk.remove(path + "/" + name) }
      for folder in ["log", "index"] {
        for name in try store.disk.list(path + "/" + folder) {
          try store.disk.remove(path + "/" + folder + "/" + name)
        }
      }
    }
  }

  @Test("a store that is read alone goes on when its directory has gone")
  func reading() throws {
    let store = TestStore()
    var engine = try store.open()
    try engine.put("a", "1")
    try engine.close()
    engine = try store.open(.readOnly)
    try store.disk.remove("/store/LOCK")
    #expect(try ExpectedStore(engine).entries.count == 1)
    try engine.close()
  }
}
