import ArgumentParser
import Foundation

@main
struct Bench: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "How fast Tidemark is beside other engines, on the same work in the same run.",
    subcommands: [
      Compare.self, Units.self, Caches.self, Collections.self, Child.self, Serve.self,
      MeasureLimits.self, Dump.self,
    ],
    defaultSubcommand: Compare.self)
}

/// One stage of one engine, in a process of its own so that its memory is, too.
struct Child: ParsableCommand {
  static let configuration = CommandConfiguration(shouldDisplay: false)

  @Argument var order: String

  func run() throws { try StageRun(ChildOrder(text: order)).run() }
}

/// The sync server of the replay.
struct Serve: ParsableCommand {
  static let configuration = CommandConfiguration(shouldDisplay: false)

  @Argument var path: String

  func run() throws {
    let server = try LoopbackServer(path: path)
    FileHandle.standardOutput.write(Data("\(server.port)\n".utf8))
    server.run()
  }
}

/// The machine's own limits.
struct MeasureLimits: ParsableCommand {
  static let configuration = CommandConfiguration(commandName: "limits", shouldDisplay: false)

  @Argument var directory: String

  func run() throws { try Limits(directory: directory).run() }
}

/// Keys and values as they are written, to see how well they compress.
struct Dump: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "values", abstract: "Prints keys and values as they are written.")

  @Option(help: "How many records.") var n = 10
  @Option(help: "How long values are on average.") var valueBytes = 250

  func run() throws {
    let indices = (0..<n).map { UInt32($0) }
    let records = Records(Values(mean: valueBytes), indices: indices, revision: 0)
    for place in 0..<n {
      FileHandle.standardOutput.write(Data(records.key(place)) + Data(records.value(place)))
    }
  }
}
