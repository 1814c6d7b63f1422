import ArgumentParser
import SyncServerKit
import Testing

@testable import tidemark_server

@Suite("Options of the command line and of the environment")
struct OptionTests {
  private func options(
    _ given: [String], _ variables: [String: String] = [:]
  ) throws -> ServerOptions {
    let arguments = try Environment.arguments(besides: given) { variables[$0] } + given
    return try TidemarkServer.parse(arguments).options()
  }

  @Test("without any, the server runs by its defaults, and the help tells the same numbers")
  func defaults() throws {
    let defaults = ServerOptions(dataDirectory: "d")
    #expect(try "\(options(["--data", "d"]))" == "\(defaults)")
    let help = TidemarkServer.helpMessage(columns: 1000)
    for text in [
      "address. (default: 127.0.0.1)", "free. (default: 8080)", "any number. (default: 500)",
      "any part. (default: 50)", "takes none. (default: 4294967296)",
    ] {
      #expect(help.contains(text))
    }
  }

  @Test("every option has a variable")
  func variables() throws {
    let lines = TidemarkServer.helpMessage(columns: 1000).split(separator: "\n")
    let names = lines.filter { $0.hasPrefix("  --") }.map { $0.dropFirst(2).prefix { $0 != " " } }
    let arguments = try Environment.arguments(besides: []) { _ in "1" }
    #expect(arguments.map { $0.prefix { $0 != "=" } } == names)
    #expect(names.count > 40)
  }

  @Test("a variable stands for its option, and the command line wins")
  func precedence() throws {
    let variables = [
      "DATA": "e", "PORT": "1", "HOST": "there", "MAX_BODY": "2", "RATE": "0.5", "OPEN": "yes",
      "NO_CREATE": "0", "JWT_ISSUER": "a=b c", "JWT_AUDIENCE": "-1",
      "POLICY": " a=detect  *=detect", "LOG_LEVEL": "error",
    ]
    let found = try options(["--port", "3", "--host=here"], variables)
    #expect(found.dataDirectory == "e" && found.port == 3 && found.host == "here")
    #expect(found.limits.bodyBytes == 2 && found.limits.requestsPerSecond == 0.5)
    #expect(found.isOpen == true && found.createsDatabases)
    #expect(found.webTokens.issuer == "a=b c" && found.webTokens.audience == "-1")
    #expect(found.policies == ["a=detect", "*=detect"])
    #expect(try options(["--policy", "b=detect"], variables).policies == ["b=detect"])
  }

  @Test(
    "a value that makes no sense is told of with its name",
    arguments: [
      ("PORT", "65536", "--port"), ("MAX_BODY", "0", "--max-body"), ("RATE", "nan", "--rate"),
      ("BURST", "-1", "--burst"), ("COMPACT_PERCENT", "x", "--compact-percent"),
      ("LOG_LEVEL", "loud", "--log-level"), ("SHUTDOWN_TIMEOUT", "-1", "--shutdown-timeout"),
      ("OPEN", "maybe", "TIDEMARK_OPEN"), ("TOKEN_FILE", "/none", "/none"),
    ])
  func wrong(name: String, value: String, words: String) throws {
    let error = #expect(throws: (any Error).self) {
      try options(["--data", "d"], [name: value])
    }
    let told = try #require(error)
    #expect(TidemarkServer.message(for: told).contains(words))
    #expect(TidemarkServer.exitCode(for: told).rawValue == 64)
  }
}
