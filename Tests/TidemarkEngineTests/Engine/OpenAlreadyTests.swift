import Testing
import TidemarkEngine
import TidemarkTestKit

@Suite("Opening a store twice")
struct OpenAlreadyTests {
  @Test(
    "a store that this process has open says so, instead of asking to end the process",
    arguments: FileSystemTests.Kind.allCases)
  func openAlready(kind: FileSystemTests.Kind) throws {
    try FileSystemTests.with(kind) { fileSystem, path in
      let environment = EngineEnvironment(
        fileSystem: fileSystem, clock: TestStore().clock, random: SeededRandom(seed: 1))
      let configuration = TestStore().configuration
      let engine = try Engine.open(
        path + "/s", configuration: configuration, environment: environment)
      let error = #expect(throws: TidemarkError.self) {
        try Engine.open(path + "/s", configuration: configuration, environment: environment)
      }
      #expect(error?.code == .locked)
      #expect(error?.message.contains("this process has the store open already") == true)
      try engine.close()
      try Engine.open(path + "/s", configuration: configuration, environment: environment).close()
    }
  }
}
