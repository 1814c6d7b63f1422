#if Encryption
  import Testing
  import TidemarkTestKit

  @testable import TidemarkEngine

  @Suite("Encryption: changing keys")
  struct EncryptionRotationTests {
    /// A store made by a script, with several segments and a sorted run, encrypted or not.
    private func runner(_ key: Encryption?, seed: UInt64) throws -> ScriptRunner {
      let disk = SimulatedFileSystem(seed: seed)
      var configuration = EngineConfiguration.campaign
      configuration.encryption = key
      var runner = ScriptRunner(disk: disk, seed: seed, configuration: configuration)
      try runner.open()
      let script = Script(seed: seed, count: 12, profile: ScriptProfile.all[0])
      for (i, step) in script.steps.enumerated() {
        try runner.run(step)
        if i == 4 || i == 8 { try runner.run(.snapshot) }
        if i == 6 { try runner.run(.closeAndReopen) }
      }
      try runner.run(.write(ScriptWrite(.put, ScriptBytes("key"), ScriptBytes("value"))))
      try runner.run(.flush)
      return runner
    }

    private func changeKey(_ runner: ScriptRunner) throws {
      try runner.engine?.compact(CompactionOptions(newKey: TestKeys.encryption(2)))
    }

    /// The store must have the new key alone, and nothing of what was there before.
    private func checkChanged(_ runner: inout ScriptRunner) throws {
      try runner.run(.closeAndReopen)
      let status = try #require(try runner.engine?.status())
      #expect(status.keyIDs == [try TestKeys.id(2)])
      #expect(status.filesToRewrite == 0)
      try runner.engine?.close()
      runner.configuration.encryption = TestKeys.encryption(2)
      runner.configuration.newKey = nil
      try runner.open()
      try runner.checkAll()
      try runner.engine?.close()
      for path in runner.disk.files() {
        #expect(!path.contains("/quarantine/"))
        guard path.hasSuffix(".seg") else { continue }
        let file = try runner.disk.open(path, .read)
        defer { file.close() }
        #expect(try SegmentReader.header(file).seal?.keyID == TestKeys.id(2))
      }
      let report = try StoreVerifier.verify(
        runner.path,
        environment: EngineEnvironment(
          fileSystem: runner.disk, clock: runner.clock, random: runner.random),
        encryption: TestKeys.encryption(2))
      #expect(report.isHealthy)
    }

    @Test(
      "a change of keys rewrites everything, also of a store that was not encrypted",
      arguments: [true, false])
    func change(wasEncrypted: Bool) throws {
      var runner = try runner(wasEncrypted ? TestKeys.encryption(1) : nil, seed: 5)
      try changeKey(runner)
      // The same engine goes on with the new key.
      try runner.run(.write(ScriptWrite(.put, ScriptBytes("more"), ScriptBytes("value"))))
      try runner.checkAll()
      runner.configuration.encryption = TestKeys.encryption(2)
      try checkChanged(&runner)
      runner.configuration.encryption = TestKeys.encryption(1)
      #expect(throws: TidemarkError.self) { try runner.open() }
    }

    @Test(
      "a crash at any call of a change of keys leaves a store that opens with both keys",
      arguments: [true, false])
    func crashes(wasEncrypted: Bool) throws {
      let key = wasEncrypted ? TestKeys.encryption(1) : nil
      var call = 0
      var crashed = true
      // One call more each time, until there is none at which the power could go off.
      while crashed, call < 1_000 {
        call += 1
        var runner = try runner(key, seed: 6)
        let survivals = Survival.sweep(seed: UInt64(call))
        let survival = survivals[call % survivals.count]
        let acknowledged = runner.acknowledged(powerCut: true)
        runner.disk.plan = .powerCut(atCall: call)
        do {
          try changeKey(runner)
          crashed = false
        } catch {
          guard !runner.disk.isRunning else { throw error }
        }
        if runner.disk.isRunning { runner.disk.powerCut() }
        runner.disk.plan = .none
        runner.disk.restart(keeping: survival)
        runner.configuration.newKey = TestKeys.encryption(2)
        do {
          try runner.recover(atLeast: acknowledged)
          try runner.run(.write(ScriptWrite(.put, ScriptBytes("after"), ScriptBytes("crash"))))
          try changeKey(runner)
          try checkChanged(&runner)
        } catch {
          Issue.record("crash at call \(call), \(survival): \(error)")
          return
        }
      }
      #expect(call > 30 && !crashed, "\(call) calls")
    }

    @Test("an ordinary compaction brings what still has an old key to the new one")
    func ordinaryCompaction() throws {
      var runner = try runner(TestKeys.encryption(1), seed: 7)
      runner.configuration.encryption = TestKeys.encryption(2, 1)
      try runner.run(.closeAndReopen)
      try runner.run(.compact)
      try checkChanged(&runner)
    }

    @Test("a new key that is no key changes nothing")
    func badKey() throws {
      var runner = try runner(TestKeys.encryption(1), seed: 8)
      #expect(throws: TidemarkError.self) {
        try runner.engine?.compact(CompactionOptions(newKey: .key { _ in [1, 2, 3] }))
      }
      #expect(try runner.engine?.status().keyIDs == [TestKeys.id(1)])
      try runner.run(.closeAndReopen)
    }

    @Test("a change of keys by another process, while the store is suspended, is not undone")
    func suspended() throws {
      // The holder of the keys learns of the new one meanwhile.
      let numbers = Lock<[UInt8]>([1])
      let store = TestStore.encrypted(
        .key { id in
          let keys = numbers.withLock { $0 }.map { TestKeys.key($0) }
          guard let id else { return keys.first }
          return keys.first { Encryption.id(ofKey: $0) == id }
        })
      let engine = try store.open()
      try engine.put("a", "1")
      try engine.suspend()
      let other = try store.with(TestKeys.encryption(1)).open(.write, seed: 9)
      try other.compact(CompactionOptions(newKey: TestKeys.encryption(2)))
      try other.close()
      numbers.withLock { $0 = [2, 1] }
      try engine.resume()
      try engine.put("b", "1")
      try engine.close()
      numbers.withLock { $0 = [2] }
      let again = try store.open(.write)
      #expect(try again.keys() == ["a", "b"])
      #expect(try again.status().keyIDs == [TestKeys.id(2)])
      try again.close()
    }
  }
#endif
