internal import ArgumentParser
internal import SyncServerKit

#if PostgreSQL
  /// The commands of an operator, which need no running server.
  enum Operation {
    static let all: [any ParsableCommand.Type] = [
      Admin.self, Copy.self, Doctor.self, SchemaCommand.self,
    ]

    /// Runs the command of a command line, and ends the process.
    /// - Parameter arguments: where they name no command, nothing is done.
    static func run(_ arguments: [String]) {
      guard let type = all.first(where: { $0.configuration.commandName == arguments.first }) else {
        return
      }
      do {
        let given = Array(arguments.dropFirst())
        let groups: [any ParsableArguments] =
          type == Admin.self ? [PostgresArguments(), KeepingOptions()] : [PostgresArguments()]
        let settings = try Environment.arguments(besides: given, of: groups)
        var command = try type.parseAsRoot(settings + given)
        try command.run()
        type.exit()
      } catch { type.exit(withError: error) }
    }
  }

  extension PostgresArguments {
    /// - Throws: without an address.
    func needed() throws -> PostgresOptions {
      guard let options = try options() else {
        throw ValidationError("give --postgres, or TIDEMARK_POSTGRES")
      }
      return options
    }
  }

  struct Admin: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "admin",
      abstract: "Administers the databases in PostgreSQL.",
      discussion: AdminCommand.all.map {
        let call = ([$0.name] + $0.arguments).joined(separator: " ")
        return "  " + call + String(repeating: " ", count: max(1, 36 - call.count)) + $0.help
      }.joined(separator: "\n"))

    @Argument(help: ArgumentHelp("A command and its arguments.", valueName: "command"))
    var words: [String]
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var postgres: PostgresArguments
    @OptionGroup(title: "What is kept")
    var keeping: KeepingOptions

    func run() throws {
      let saysHistory =
        CommandLine.arguments.contains { $0.hasPrefix("--keep-history-days") }
        || Environment.text("KEEP_HISTORY_DAYS") != nil
      guard words.first != "compact" || saysHistory else {
        throw ValidationError("say --keep-history-days as the servers do: what is older goes")
      }
      var settings = CompactionSettings()
      keeping.apply(to: &settings)
      let administration = try Told.telling {
        try Administration(try postgres.needed(), keeping: settings)
      }
      defer { administration.close() }
      let answer = try Told.telling { try administration.answer(words) }
      print(json ? answer.json + "\n" : answer.table, terminator: "")
    }
  }

  struct Copy: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "copy",
      abstract: "Copies a database from a server's data directory into PostgreSQL.",
      discussion: """
        End the server of the directory first. Devices that call a server over PostgreSQL then \
        find all as it was, and send what they have written meanwhile. The directory stays as it is.
        """)

    @Argument(help: "The name of the database.")
    var name: String
    @Option(help: ArgumentHelp("The data directory that has it.", valueName: "directory"))
    var from: String
    @Option(help: ArgumentHelp("Another name for the copy.", valueName: "name"))
    var `as`: String?
    @OptionGroup var postgres: PostgresArguments

    func run() throws {
      let count = try Told.telling {
        try postgres.needed().copy(name, from: from, as: `as` ?? name)
      }
      print("\(count) entries")
    }
  }

  struct Doctor: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "doctor",
      abstract: "Examines PostgreSQL, its settings and the tables; changes nothing.",
      discussion: "The exit status is 1 where something fails.")

    @OptionGroup var postgres: PostgresArguments

    func run() throws {
      let (lines, fails) = try postgres.needed().examined()
      for line in lines { print(line) }
      if fails { throw ExitCode(1) }
    }
  }

  struct SchemaCommand: ParsableCommand {
    enum Action: String, ExpressibleByArgument, CaseIterable { case apply, check, sql }

    static let configuration = CommandConfiguration(
      commandName: "schema",
      abstract: "Makes the tables in PostgreSQL, checks them, or prints the statements.",
      discussion: "apply needs a role that may make a schema; servers need none.")

    @Argument(help: "apply, check or sql.")
    var action: Action
    @OptionGroup var postgres: PostgresArguments

    func run() throws {
      switch action {
      case .sql: print(PostgresOptions.schema, terminator: "")
      case .apply: try Told.telling { try postgres.needed().applySchema() }
      case .check:
        try Told.telling {
          try Administration(try postgres.needed(), keeping: CompactionSettings()).close()
        }
      }
    }
  }
#endif
