#if Encryption
  import Foundation
  import Testing
  import Tidemark
  import TidemarkEngine

  /// Key files are on the real disk, since they are no part of a store.
  private final class KeyFiles {
    private let directory: URL

    init() throws {
      directory = FileManager.default.temporaryDirectory
        .appendingPathComponent("tidemark-keys-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    func file(_ name: String, _ bytes: [UInt8]) throws -> String {
      let url = directory.appendingPathComponent(name)
      try Data(bytes).write(to: url)
      return url.path
    }

    func key(_ number: UInt8) throws -> String {
      try file("key-\(number)", Array(repeating: number, count: 32))
    }
  }

  @Suite("Encryption on the command line")
  struct EncryptionToolTests {
    private let files: KeyFiles
    private var bench = Bench()

    init() throws {
      files = try KeyFiles()
      let run = bench.run(
        "import", "S", "--key-file", try files.key(1),
        input: """
          {"key":"a","value":"secret-1","labels":["l"]}
          {"key":"b","value":"secret-2"}
          """)
      #expect(run.status == 0, "\(run.talk)")
    }

    @Test("a store imported with a key reads with it in any form, by option or environment")
    func forms() throws {
      var bench = bench
      let digits = Array((String(repeating: "01", count: 32) + "\n").utf8)
      for path in [try files.key(1), try files.file("digits", digits)] {
        #expect(bench.run("get", "S", "a", "--key-file", path).output == "secret-1")
        bench.environment = ["TIDEMARK_KEY_FILE": path]
        #expect(bench.run("get", "S", "b").output == "secret-2")
        bench.environment = [:]
      }
    }

    @Test("every command takes a key file, and without the key ends with 77 and one line")
    func everyCommand() throws {
      let key = try files.key(1)
      let other = try files.key(2)
      for arguments in [
        ["get", "S", "a"], ["put", "S", "c", "v"], ["delete", "S", "c"], ["scan", "S"],
        ["labels", "S"], ["history", "S", "a"], ["at", "S", "1"], ["tail", "S"], ["stat", "S"],
        ["compact", "S"], ["snapshot", "S"], ["export", "S"], ["explain", "S", "a"],
        ["rebuild", "S"], ["diff", "S", "1", "1"], ["backup", "S", "B"],
        ["repair", "S", "--into", "R"], ["replay", "S", "--to", "T"], ["verify", "S"],
        ["doctor", "S"],
      ] {
        let readsChecksums = ["verify", "doctor"].contains(arguments[0])
        for wrong in [[], ["--key-file", other]] where !(readsChecksums && wrong.isEmpty) {
          let run = bench.run(arguments + wrong)
          #expect(run.status == 77, "\(arguments + wrong)")
          #expect(run.bytes.isEmpty)
          #expect(run.talk.filter(\.isNewline).count == 1)
          #expect(run.talk.contains(wrong.isEmpty ? "give its key" : "another key"))
        }
        let run = bench.run(arguments + ["--key-file", key])
        #expect(run.status == 0, "\(arguments): \(run.talk)")
      }
      for copy in ["B", "R", "T"] {
        #expect(bench.run("get", copy, "a", "--key-file", key).output == "secret-1")
        #expect(bench.run("get", copy, "a").status == 77)
      }
    }

    @Test("verify without the key checks checksums and says so")
    func verify() throws {
      let run = bench.run("verify", "S")
      #expect(run.status == 0)
      #expect(run.talk.contains("only checksums were checked"))
      let withKey = bench.run("verify", "S", "--key-file", try files.key(1))
      #expect(withKey.status == 0 && !withKey.talk.contains("checksums"))
    }

    @Test("a key for a store that is not encrypted, and a file that holds no key, are 64")
    func usage() throws {
      #expect(bench.run("import", "P", input: #"{"key":"a","value":"1"}"#).status == 0)
      let run = bench.run("get", "P", "a", "--key-file", try files.key(1))
      #expect(run.status == 64)
      #expect(run.talk.contains("not encrypted"))
      for content in [
        "", "short", String(repeating: "0", count: 63), String(repeating: "x", count: 64),
      ] {
        let path = try files.file("bad", Array(content.utf8))
        let run = bench.run("get", "S", "a", "--key-file", path)
        #expect(run.status == 64, "\(content)")
        #expect(run.talk.contains("64 hexadecimal digits"))
      }
      #expect(bench.run("get", "S", "a", "--key-file", "/nowhere/at/all").status == 1)
    }

    @Test("compact --rekey changes the key, and encrypts what was not encrypted")
    func rekey() throws {
      let old = try files.key(1)
      let new = try files.key(2)
      #expect(bench.run("compact", "S", "--key-file", old, "--rekey", new).status == 0)
      #expect(bench.run("get", "S", "a", "--key-file", new).output == "secret-1")
      #expect(bench.run("get", "S", "a", "--key-file", old).status == 77)
      #expect(bench.run("import", "P", input: #"{"key":"a","value":"plain"}"#).status == 0)
      #expect(bench.run("compact", "P", "--rekey", new).status == 0)
      #expect(bench.run("get", "P", "a").status == 77)
      #expect(bench.run("get", "P", "a", "--key-file", new).output == "plain")
      let stat = try bench.run("stat", "P", "--key-file", new, "--output", "json").object()
      let encryption = try #require(stat["encryption"] as? [String: Any])
      #expect((encryption["keys"] as? [String])?.count == 1)
      #expect(encryption["files_to_rewrite"] as? Int == 0)
    }

    @Test("replay takes another key for the target, or none")
    func replay() throws {
      let one = try files.key(1)
      let two = try files.key(2)
      let to = ["replay", "S", "--key-file", one]
      #expect(bench.run(to + ["--to", "T", "--to-key-file", two]).status == 0)
      #expect(bench.run("get", "T", "a", "--key-file", two).output == "secret-1")
      #expect(bench.run(to + ["--to", "U", "--to-key-file", "none"]).status == 0)
      #expect(bench.run("get", "U", "a").output == "secret-1")
    }
  }
#else
  import Testing
  import TidemarkEngine

  @Suite("A build without encryption")
  struct NoEncryptionToolTests {
    @Test("an encrypted store is 76, and says which build it takes")
    func refused() throws {
      let bench = Bench()
      let disk = bench.disk
      for path in ["S", "S/log", "S/index", "S/quarantine"] { try disk.createDirectory(path) }
      var manifest = Manifest(
        storeID: Array(repeating: 1, count: 16), replicaID: Array(repeating: 2, count: 16),
        bootID: Array(repeating: 3, count: 16), hashSeed: 4)
      manifest.keyID = Encryption.KeyID(Array(repeating: 5, count: 16))
      manifest.generation = 1
      for name in StoreLayout.manifests {
        let file = try disk.open("S/" + name, .create)
        try file.writeFully(manifest.encoded().rawSpan, at: 0)
        file.close()
      }
      for arguments in [["scan", "S"], ["put", "S", "k", "v"], ["stat", "S"]] {
        let run = bench.run(arguments)
        #expect(run.status == 76)
        #expect(run.talk.contains("trait Encryption"), "\(run.talk)")
      }
      #expect(bench.run("verify", "S").status == 0)
    }
  }
#endif
