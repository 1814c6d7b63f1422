import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Things that the disk cannot read")
struct UnreadableTests {
  private static let allPages = Array(stride(from: 0, to: 1 << 20, by: 4096))

  private func code(_ body: () throws -> Void) -> TidemarkError.Code? {
    do {
      try body()
      return nil
    } catch { return (error as? TidemarkError)?.code }
  }

  /// The files of a store whose writer was killed: one sealed segment, and one that was not.
  private func killed(values: Int = 3) throws -> (StoreFiles, ExpectedStore) {
    let disk = MemoryFileSystem()
    let engine = try StoreFiles.open(disk, .create)
    try engine.put("sealed", "1")
    try engine.writer.sealSegments()
    for number in 0..<values { try engine.put("open-\(number)", "2") }
    let expected = try ExpectedStore(engine)
    let files = try StoreFiles(disk)
    try engine.close()
    return (files, expected)
  }

  // MARK: The log

  @Test("the unreadable end of a segment that was never sealed is a loss, and not a torn tail")
  func openSegment() throws {
    let (files, _) = try killed()
    let name = try #require(files.segments.last)
    for pages in [[8192], [8192, 12288], Array(Self.allPages.dropFirst(2))] {
      let report = try RepairTests.repair(FailingPages(try files.disk(), file: name, pages: pages))
      #expect(!report.isComplete, "pages \(pages.prefix(3))")
      #expect(report.losses.contains { $0.file == name })
      #expect(report.entries == 1)
    }
  }

  @Test("a segment that was being written and is missing is a loss")
  func openSegmentMissing() throws {
    let (files, _) = try killed()
    let name = try #require(files.segments.last)
    let report = try RepairTests.repair(try files.removing(name).disk())
    #expect(report.losses.map(\.file) == [name] && report.entries == 1)
  }

  @Test("a file that cannot be read at all costs its entries and no others")
  func wholeFile() throws {
    let (files, expected) = try SampleStore.large()
    for name in files.segments {
      for isListed in [true, false] {
        let source = isListed ? files : files.removing("MANIFEST.0", "MANIFEST.1")
        let disk = FailingPages(try source.disk(), file: name, pages: Self.allPages)
        let report = try RepairTests.repair(disk)
        #expect(report.losses.contains { $0.file == name }, "\(name), listed: \(isListed)")
        #expect(report.entries < expected.entries.count)
      }
    }
  }

  @Test("either header of a segment can be unreadable, and either copy of a dictionary")
  func headers() throws {
    let (files, expected) = try SampleStore.large()
    for name in files.segments {
      for page in [0, 4096] {
        let disk = FailingPages(try files.disk(), file: name, pages: [page])
        let engine = try StoreFiles.open(disk)
        #expect(try ExpectedStore(engine).entries == expected.entries, "\(name), page \(page)")
        try engine.close()
      }
    }
  }

  @Test("a copy of a store with unreadable pages has all the rest, and the damage on record")
  func backup() throws {
    let (files, expected) = try SampleStore.large()
    for name in files.segments {
      let page = try files.middle(of: name) / 4096 * 4096
      let disk = FailingPages(try files.disk(), file: name, pages: [page])
      let engine = try StoreFiles.open(disk, .readOnly)
      let error = #expect(throws: TidemarkError.self) { try engine.backup(to: "copy") }
      try engine.close()
      #expect(error?.code == .damaged && error?.file == name && error?.offset == page)
      #expect(code { try StoreFiles.open(disk, .write, path: "copy").close() } == .damaged)
      let report = try StoreRepair.repair(
        from: "copy", into: "again", environment: StoreFiles.environment(disk))
      #expect(report.entries > 0 && !report.lost.isEmpty)
      #expect(report.entries + Int(report.lost.count) >= expected.entries.count)
    }
  }

  @Test("backup copies a store with recorded damage and an unsealed segment, twice in a row")
  func backupOfDamaged() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("a", "1", durability: .durable)
    store.disk.kill()
    store.disk.restart()
    let manifests = ManifestStore(store.disk, storePath: store.path)
    var manifest = try #require(try manifests.load()).manifest
    manifest.damage = [
      Manifest.Damage(
        state: .found, segmentID: manifest.segments[0].id, offset: 1 << 20, length: 4096,
        firstSequence: 900, lastSequence: 900, reason: [])
    ]
    try manifests.update(&manifest)
    var path = store.path
    for copy in ["/copy", "/copy of copy"] {
      var source = store
      source.path = path
      let reader = try source.open(.readOnly)
      try reader.backup(to: copy)
      try reader.close()
      path = copy
    }
    var copied = store
    copied.path = path
    #expect(code { try copied.open(.write).close() } == .damaged)
    let last = try copied.open(.readOnly)
    #expect(last.reader.manifest.damage == manifest.damage && last.reader.lastSequence == 1)
    try last.close()
  }

  // MARK: MANIFEST

  @Test(
    "one unreadable copy of MANIFEST leaves a store that reads and writes", arguments: 0...1,
    [EngineConfiguration.Access.write, .create])
  func manifest(copy: Int, access: EngineConfiguration.Access) throws {
    let store = TestStore()
    var engine = try store.open()
    try engine.put("a", "1")
    try engine.close()
    let name = StoreLayout.manifests[copy]
    let unreadable: FaultPlan = [
      FaultRule(.error(.EIO), .call(1), calls: .only([.read]), path: name, times: .max)
    ]
    store.disk.plan = unreadable
    engine = try store.open(.readOnly)
    #expect(try ExpectedStore(engine).entries.count == 1)
    try engine.close()
    store.disk.keepsTrace = true
    engine = try store.open(access)
    // The whole copy is written over both before anything else is.
    let written = store.disk.trace.filter { $0.operation == .write && !$0.path.hasSuffix("LOCK") }
    #expect(
      written.prefix(2).map(\.path) == [
        "/store/" + StoreLayout.manifests[1 - copy], "/store/" + name,
      ])
    try engine.put("b", "2")
    try engine.close()
    store.disk.plan = .none
    #expect(
      store.disk.contents(of: "/store/MANIFEST.0") == store.disk.contents(of: "/store/MANIFEST.1"))
    let report = try StoreVerifier.verify("/store", environment: store.environment())
    #expect(report.isHealthy && report.entries == 2)
  }

  @Test("two unreadable copies of MANIFEST are told as the disk's fault")
  func manifests() throws {
    let store = TestStore()
    try store.open().close()
    store.disk.plan = [
      FaultRule(.error(.EIO), .call(1), calls: .only([.read]), path: "MANIFEST", times: .max)
    ]
    for access in [EngineConfiguration.Access.readOnly, .write, .create] {
      #expect(code { _ = try store.open(access) } == .inputOutput)
    }
  }

  // MARK: Folders

  @Test("a missing folder of the index is made, and so is one of a log without segments")
  func folders() throws {
    let (files, expected) = try SampleStore.large()
    var bare = files
    bare.folders.removeAll { $0 == StoreLayout.indexDirectory }
    for name in files.files.keys where name.hasPrefix("index/") { bare.files[name] = nil }
    for access in [EngineConfiguration.Access.readOnly, .write, .create] {
      let disk = try bare.disk()
      let engine = try StoreFiles.open(disk, access)
      #expect(try ExpectedStore(engine).newest == expected.newest)
      if access != .readOnly { try engine.put("after", "1") }
      try engine.close()
      guard access != .readOnly else { continue }
      #expect(try StoreFiles.verify(disk).isHealthy)
    }
    let disk = MemoryFileSystem()
    try StoreFiles.open(disk, .create).close()
    for folder in [StoreLayout.logDirectory, StoreLayout.indexDirectory] {
      try disk.remove(StoreFiles.path + "/" + folder)
    }
    let engine = try StoreFiles.open(disk)
    try engine.put("first", "1")
    try engine.close()
    #expect(try StoreFiles.verify(disk).isHealthy)
  }

  @Test("a store whose creation was cut off is told as that, and can be created again")
  func cutOff() throws {
    let folders = [
      StoreLayout.logDirectory, StoreLayout.indexDirectory, StoreLayout.quarantineDirectory,
    ]
    for (made, files) in [(0, ["LOCK"]), (1, []), (3, ["LOCK"]), (3, ["LOCK", "MANIFEST.0"])] {
      let disk = MemoryFileSystem()
      try disk.createDirectory(StoreFiles.path)
      for folder in folders.prefix(made) {
        try disk.createDirectory(StoreFiles.path + "/" + folder)
      }
      for name in files {
        let file = try disk.open(StoreFiles.path + "/" + name, .create)
        try file.writeFully([UInt8](repeating: 0, count: 100).rawSpan, at: 0)
        file.close()
      }
      let attempts: [() throws -> Void] = [
        { try StoreFiles.open(disk, .write).close() },
        { try StoreFiles.open(disk, .readOnly).close() },
        { _ = try StoreFiles.verify(disk) },
        { _ = try RepairTests.repair(disk) },
      ]
      for (number, attempt) in attempts.enumerated() {
        let error = #expect(throws: TidemarkError.self, "\(made), \(files), attempt \(number)") {
          try attempt()
        }
        #expect(error?.code == .notAStore && error?.message.contains("cut off") == true)
      }
      try StoreFiles.open(disk, .create).close()
      #expect(try StoreFiles.verify(disk).isHealthy)
    }
  }

  // MARK: Attachments

  @Test("an unreadable attachment is told, and everything else is verified, repaired and copied")
  func attachments() throws {
    let store = TestStore()
    var engine = try store.open()
    var names: [String] = []
    for number in 0..<3 {
      let writer = try engine.newAttachment()
      let content = [UInt8](repeating: UInt8(number), count: 100_000 * number + 5)
      try writer.write(content.rawSpan)
      let hold = try writer.finish()
      try engine.attach(hold.id, to: "k\(number)")
      names.append(StoreLayout.attachmentDirectory + "/" + hold.id.fileName)
    }
    try engine.close()
    for name in names {
      let before = store.disk.snapshot()
      defer { store.disk.restore(before) }
      store.disk.plan = [
        FaultRule(
          .error(.EIO), .call(1), calls: .only([.read]), path: "/store/" + name, times: .max)
      ]
      let found = try StoreVerifier.verify("/store", environment: store.environment())
      #expect(found.findings.map(\.file) == [name] && found.attachments == 2)
      let repaired = try StoreRepair.repair(
        from: "/store", into: "/repaired", environment: store.environment())
      #expect(repaired.losses.map(\.file) == [name] && repaired.entries == 3)
      engine = try store.open(.readOnly)
      let error = #expect(throws: TidemarkError.self) { try engine.backup(to: "/copy") }
      #expect(error?.code == .damaged && error?.file == name)
      try engine.close()
      for copy in ["/repaired", "/copy"] {
        let copied = try StoreVerifier.verify(copy, environment: store.environment())
        #expect(copied.findings.map(\.file) == [name] && copied.attachments == 2)
        #expect(copied.findings.allSatisfy { $0.message.contains("missing") })
      }
      store.disk.plan = .none
    }
  }
}
