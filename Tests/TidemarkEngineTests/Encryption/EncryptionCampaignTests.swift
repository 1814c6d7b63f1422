#if Encryption
  import Testing
  import TidemarkTestKit

  @testable import TidemarkEngine

  /// The campaigns over an encrypted store, in short.
  @Suite("Encryption: campaigns")
  struct EncryptionCampaignTests {
    private var configuration: EngineConfiguration {
      var configuration = EngineConfiguration.campaign
      configuration.encryption = TestKeys.encryption(1)
      return configuration
    }

    @Test("an encrypted store answers like the model, crashes among it", arguments: 1...8)
    func model(seed: Int) throws {
      var profile = ScriptProfile.all[seed % ScriptProfile.all.count]
      if seed % 2 == 0 { profile = profile.withCrashes() }
      let script = Script(seed: UInt64(seed), count: 60, profile: profile)
      let disk = SimulatedFileSystem(seed: script.seed)
      var runner = ScriptRunner(disk: disk, seed: script.seed, configuration: configuration)
      do {
        try runner.open()
        for step in script.steps { try runner.run(step) }
        try runner.checkAll()
      } catch { Issue.record("seed \(seed): \(error)") }
    }

    @Test("a power cut leaves a prefix of an encrypted store", arguments: [(401, 1), (402, 3)])
    func crashSweep(seed: Int, depth: Int) throws {
      let profile = ScriptProfile.all[seed % ScriptProfile.all.count]
      let script = Script(seed: UInt64(seed), count: 20, profile: profile)
      let sweep = CrashSweep(script, configuration: configuration, depth: depth)
      let calls = try sweep.countCalls()
      _ = try sweep.run(calls: stride(from: 1, through: calls, by: max(1, calls / 12)))
    }
  }
#endif
