import Testing

/// Each rule is shown something that it must refuse and something that it must not.
@Suite("The rules of the repository")
struct RuleTests {
  private func engine(_ place: String, _ text: String) -> SourceFile {
    SourceFile("Sources/TidemarkEngine/\(place)", text)
  }

  private func spaces(_ count: Int) -> String { String(repeating: " ", count: count) }

  @Test("comments and text are no code, interpolations are")
  func scanner() {
    #expect(SwiftScanner.code(of: "a // b\nc") == "a     \nc")
    #expect(SwiftScanner.code(of: "a/* b /* c */ d */e") == "a" + spaces(17) + "e")
    #expect(SwiftScanner.code(of: #"x = "a\"b" + y"#) == #"x = "    " + y"#)
    #expect(SwiftScanner.code(of: #"x = "a\(f("b", (c)))d" + y"#) == #"x = "  (f(" ", (c))) " + y"#)
    #expect(SwiftScanner.code(of: "x = #\"a\"b\"# + y") == "x = #\"   \"# + y")
    #expect(SwiftScanner.code(of: "\"\"\"\na \"b\"\n\"\"\" + y") == "\"\"\"\n     \n\"\"\" + y")
  }

  @Test("a time limit that a busy machine could exceed is seen")
  func timeLimits() {
    func found(_ line: String) -> Int {
      StyleRules.shortTimeLimits([SourceFile("Tests/A.swift", line)]).count
    }
    #expect(found("@Suite(\"A\", .timeLimit(.minutes(2)))") == 1)
    #expect(found("@Suite(\"A\", .timeLimit(.minutes(20)))") == 0)
    #expect(found("// .timeLimit(.minutes(2))") == 0)
  }

  @Test("a path in a document that leads nowhere is seen, a word of another kind is not")
  func documentPaths() {
    let known: Set = ["Sources/TidemarkStore/Store/Store.swift", "Tools/bench", "README.md"]
    func missing(_ text: String) -> Int {
      DocumentRules.missing(DocumentRules.mentions(in: text, of: "A.md"), among: known).count
    }
    #expect(missing("`Store/Store.swift` and `Tools/bench --n 10`, [more](README.md)") == 0)
    #expect(missing("```\nTools/bench  # fast\n```") == 0)
    #expect(missing("`Tools/Benchmarks/.build/x`, `NAME-OFFSET.md`, `note/1`, `Store/status`") == 0)
    #expect(missing("`Read/Store.swift`") == 1)
    #expect(missing("[more](Gone.md)") == 1)
    #expect(missing("```\nTools/gone --n 10\n```") == 1)
  }

  @Test("a link of a paper is followed from its folder, a link of an article is not")
  func documentLinks() {
    let known: Set = ["Sources/README.md", "README.md", "LICENSE"]
    func missing(_ text: String, in document: String = "Sources/A/B.md") -> [String] {
      DocumentRules.missing(DocumentRules.mentions(in: text, of: document), among: known)
    }
    #expect(missing("[a](../README.md#more), [b](../../LICENSE), [c](#here), [d](https://e)") == [])
    #expect(missing("[a](README.md)") == ["Sources/A/B.md:1: Sources/A/README.md"])
    #expect(missing("![a](../../../README.md)").count == 1)
    #expect(missing("![a](gone.svg)").count == 1)
    #expect(missing("![a](gone.svg)", in: "Sources/A/A.docc/B.md") == [])
    #expect(missing("[a](gone)\n```\n[a](gone)\n```").count == 1)
  }

  @Test("the bytes of chosen documents are counted, those of others are not")
  func documentBytes() {
    let documents = [SourceFile("A.md", "äb"), SourceFile("B.md", "c"), SourceFile("C.md", "d")]
    #expect(DocumentRules.bytes(of: documents, among: ["A.md", "C.md", "D.md"]) == 4)
  }

  @Test("a comparison that differs from its files, or in which ours is longer, is seen")
  func comparison() {
    let article = "# A\n```\na\n\nb\n```\ntext\n```swift\nc\n// why\nd\n```\n"
    func breaches(_ other: String, _ ours: String, in article: String = article) -> Int {
      ComparisonRules.breaches(article: article, other: other, ours: ours).count
    }
    #expect(breaches("a\n\nb\n", "c\n// why\nd\n") == 0)
    #expect(breaches("a\nb\n", "c\n// why\nd\n") == 1)
    #expect(breaches("a\n\nb\n", "c\nd\n") == 1)
    #expect(breaches("a\n\nb\n", "c\n// why\nd\n", in: "```\na\n") == 2)
    #expect(breaches("b\n", "c\nd\n", in: "```\nb\n```\n```swift\nc\nd\n```\n") == 1)
    // Our half as a text that nobody compiles is none.
    #expect(breaches("b\n", "c\n", in: "```\nb\n```\n```\nc\n```\n") == 1)
  }

  @Test("a file outside the layers is seen")
  func stray() {
    #expect(LayerRules.strayFiles([engine("A.swift", "")]).count == 1)
    #expect(LayerRules.strayFiles([engine("Misc/A.swift", "")]).count == 1)
    #expect(LayerRules.strayFiles([engine("Log/A.swift", "")]) == [])
  }

  @Test("imports that are not allowed are seen, however they are written")
  func imports() {
    for line in [
      "import Foundation", "public import Foundation", "@preconcurrency import Foundation",
      "internal import struct Foundation.Date", "import FoundationEssentials",
      "@testable import Foundation", "import Glibc",
    ] {
      #expect(LayerRules.imports([engine("Format/A.swift", line)]).count == 1, "\(line)")
    }
    #expect(LayerRules.imports([engine("Platform/A.swift", "internal import Glibc")]) == [])
    #expect(LayerRules.imports([engine("Format/A.swift", "// import Foundation")]) == [])
    #expect(LayerRules.imports([engine("Platform/A.swift", "internal import Crypto")]).count == 1)
    #expect(
      LayerRules.imports([engine("Platform/BlockSealer.swift", "internal import Crypto")]) == [])
    #expect(
      LayerRules.imports([SourceFile("Sources/Tidemark/A.swift", "import Foundation")]).count == 1)
    #expect(
      LayerRules.imports([SourceFile("Sources/Tidemark/A.swift", "import FoundationEssentials")])
        == [])
  }

  @Test("a condition that check-apple would answer as Linux does is seen, and a missing C library")
  func platforms() {
    func conditions(_ text: String) -> Int {
      PlatformRules.conditions([SourceFile("Tests/A.swift", text)]).count
    }
    #expect(conditions("#if os(Linux)\na\n#endif") == 1)
    #expect(conditions("  #if os(macOS)\na\n#endif") == 1)
    #expect(conditions("#if canImport(Glibc)\na\n#elseif canImport(Darwin)\nb\n#endif") == 1)
    #expect(conditions("#if canImport(Glibc) && !canImport(Darwin)\na\n#endif") == 1)
    #expect(conditions("#if canImport(FoundationNetworking)\na\n#endif") == 1)
    #expect(
      conditions("#if A\n#if canImport(Darwin)\n#endif\n#elseif canImport(Musl)\n#endif") == 1)
    #expect(conditions("#if canImport(Darwin)\na\n#elseif canImport(Glibc)\nb\n#endif") == 0)
    #expect(conditions("#if !canImport(Darwin) && canImport(Glibc)\na\n#endif") == 0)
    #expect(conditions("#if canImport(Network)\na\n#endif\n// #if os(Linux)\n") == 0)
    func libraries(_ text: String) -> Int {
      PlatformRules.libraries([SourceFile("Tests/A.swift", text)]).count
    }
    #expect(libraries("import Glibc\nimport Darwin\nimport Musl") == 1)
    #expect(libraries("import Glibc\nimport Darwin\nimport Musl\nimport Android") == 0)
    #expect(libraries("import Foundation") == 0)
  }

  @Test("a name from a higher layer is seen, from a lower one not")
  func layers() {
    let files = [
      engine("Format/Frame.swift", "package struct Frame {}"),
      engine("Index/Map.swift", "package final class KeyMap { struct Slot {} }"),
      engine("Cache/Hot.swift", "package enum HotCache {}"),
      engine("Log/Log.swift", "public typealias Writer = Frame\nlet map: KeyMap"),
    ]
    #expect(LayerRules.upwardNames(files) == [])
    func found(_ place: String, _ text: String) -> Int {
      LayerRules.upwardNames(files + [engine(place, text)]).count
    }
    #expect(found("Format/A.swift", "let x: KeyMap") == 1)
    #expect(found("Index/A.swift", "let x: Writer") == 1)
    #expect(found("Index/A.swift", "let x: HotCache") == 1)
    #expect(found("Format/A.swift", "// KeyMap") == 0)
    #expect(found("Format/A.swift", "struct Slot {}\nlet x: Slot") == 0)
    #expect(found("Format/A.swift", "struct A { enum Writer {} }\nlet x: Writer") == 0)
    #expect(found("Engine/A.swift", "let x: KeyMap, y: Frame, z: Writer") == 0)
  }

  @Test("the owner rule reports an owner's lock or state type that another folder names")
  func owners() {
    let owner = engine(
      "Engine/Low/A.swift",
      """
      final class A: StateOwner {
        let reading: Lock<AState>
        let others = Monitor(BState())
        private let tail = Lock(CState())
        let plain = 1
      }
      struct AState { var value = 1 }
      """)
    #expect(OwnerRules.count([owner, engine("Engine/B.swift", "final class B {}")]) == 1)
    func found(_ path: String, _ text: String) -> Int {
      OwnerRules.breaches([owner, engine(path, text)]).count
    }
    #expect(found("Engine/High/B.swift", "a.reading.withLock { $0.value }") == 1)
    #expect(found("Engine/B.swift", "a.others.wait { true }") == 1)
    #expect(found("Engine/High/B.swift", "func f(_ state: inout AState) {}") == 1)
    #expect(found("Engine/Low/B.swift", "a.reading.withLock { $0.value }") == 0)
    #expect(found("Engine/High/B.swift", "reading.count; a.tail.words; // a.reading.x") == 0)
    #expect(found("Engine/High/B.swift", "let state = CState()") == 1)
  }

  @Test("a type is as long as its declaration and all its extensions together")
  func typeLength() {
    let files = [
      engine("Engine/A.swift", "struct A {\n  var a = 1\n}\n\nstruct B { var b = 1 }\n"),
      SourceFile("Sources/Other/A.swift", "extension A {\n  func f() {\n  }\n}\n"),
    ]
    #expect(OwnerRules.longTypes(files, most: 7) == [])
    #expect(OwnerRules.longTypes(files, most: 6) == ["A: 7 lines"])
    #expect(OwnerRules.longTypes(files, most: 0) == ["A: 7 lines", "B: 1 lines"])
  }

  @Test("an import of TidemarkPostgres outside of `#if PostgreSQL` is reported")
  func importsWithoutTrait() {
    func found(_ text: String) -> [String] {
      LayerRules.importsWithoutTrait([SourceFile("Tools/A.swift", text)])
    }
    #expect(found("internal import TidemarkPostgres") == ["Tools/A.swift"])
    #expect(found("#if PostgreSQL\n  internal import TidemarkPostgres\n#endif\n") == [])
    #expect(found("#if JWT\n#endif\nimport TidemarkPostgres") == ["Tools/A.swift"])
  }

  @Test("a command that goes past the store is seen, and one that is listed is not")
  func besideStore() {
    func found(_ place: String, _ text: String) -> [String] {
      LayerRules.besideStore([SourceFile("Sources/LogtoolKit/" + place, text)])
    }
    #expect(found("Commands/A.swift", "import TidemarkEngine\nlet rows = try store.keys()") == [])
    #expect(found("Commands/A.swift", "let a = store.engine").count == 1)
    #expect(found("Commands/A.swift", "let a: EngineScan").count == 1)
    #expect(found("Entries/LogFollower.swift", "let a: Engine") == [])
  }

  @Test("folders that name each other's types are seen, also by way of a third")
  func circles() {
    let files = [
      engine("Log/A.swift", "struct A {}"), engine("Log/Deep/B.swift", "struct B { let a: A }"),
      engine("Log/Deep/Low/C.swift", "struct C { let a: A, b: B }"),
    ]
    #expect(LayerRules.circles(files) == [])
    let up = engine("Log/D.swift", "struct D { let c: C }")
    #expect(
      LayerRules.circles(files + [up]).map { $0.split(separator: "/").last }
        == ["Log", "Deep", "Low"])
    let nested = engine("Log/D.swift", "struct D { struct C {}\nlet c: C }")
    #expect(LayerRules.circles(files + [nested]) == [])
  }

  @Test("a way around the seams is seen")
  func sideDoors() {
    for line in [
      "let d = open(path, 0)", "_ = fsync(1)", "try Glibc.read(1)", "let n = Date()",
      "Task { }", "var g = SystemRandomNumberGenerator()", "let r = Int.random(in: 0..<3)",
      "x.shuffle()", "if write(fd, p, 3) < 0 {}", "x.hashValue",
    ] {
      #expect(LayerRules.sideDoors([engine("Log/A.swift", line)]).count == 1, "\(line)")
    }
    for line in [
      "try file.read(into: &b, at: 0)", "func open() {}\n_ = open()", "let text = \"Task\"",
      "reopen(x)", "let randomness = 3",
    ] {
      #expect(LayerRules.sideDoors([engine("Log/A.swift", line)]) == [], "\(line)")
    }
    #expect(LayerRules.sideDoors([engine("Platform/A.swift", "_ = fsync(1)")]) == [])
  }

  @Test("anything too long is seen, anything that just fits is not")
  func sizes() {
    func file(_ text: String) -> [SourceFile] { [SourceFile("A.swift", text)] }
    let lines = { String(repeating: "x\n", count: $0) }
    func functions(_ text: String) -> Int { StyleRules.longFunctions(file(text)).count }
    #expect(StyleRules.longFiles(file(lines(400))) == [])
    #expect(StyleRules.longFiles(file(lines(401))).count == 1)
    #expect(StyleRules.longLines(file(String(repeating: "é", count: 100))) == [])
    #expect(StyleRules.longLines(file("a\n" + String(repeating: "x", count: 101))).count == 1)
    #expect(functions("struct A {\n  func f() {\n\(lines(58))  }\n}") == 0)
    #expect(functions("struct A {\n  func f() {\n\(lines(59))  }\n}") == 1)
    #expect(functions("init(a: Int) {\n\(lines(59))}") == 1)
    #expect(functions("func f(\n  a: Int = { 1 }()\n) -> Int\n{\n\(lines(56))}") == 1)
    #expect(functions("func f()\nvar a: Int {\n\(lines(70))}") == 0)
  }

  @Test("the length of a function is not that of its type or of its neighbours")
  func neighbours() {
    let text = """
      protocol P {
        func a()
        var b: Int { get }
      }

      struct S { init() { x = 1 }
        func c() -> String { "}" }

        func d() {
          if y { z() } else { w() }
        }
        deinit { e() }
      }
      """
    let functions = StyleRules.functions(SourceFile("A.swift", text))
    #expect(functions.map(\.start) == [6, 7, 9, 12])
    #expect(functions.map(\.lines) == [1, 1, 3, 1])
  }

  @Test("leftovers are seen, words that only contain them are not")
  func leftovers() {
    let word = "TO" + "DO"
    #expect(StyleRules.leftovers([SourceFile("A.swift", "// \(word): later")]).count == 1)
    #expect(StyleRules.leftovers([SourceFile("A.swift", "let x = \"\(word)S\"")]) == [])
  }

  @Test("a planted bug that is more than asked for, or its condition, is seen")
  func plantedBugs() {
    func uses(_ text: String) -> [String] { PlantedRules.uses([SourceFile("A.swift", text)]) }
    #expect(uses("if PlantedBug.isOn(.x) { return }\n") == [])
    #expect(uses("\nPlantedBug.plant(.x)\n") == ["A.swift:2"])
    #expect(uses("let bugs: [PlantedSyncBug] = []\n") == ["A.swift:1"])
    let condition = SourceFile("A.swift", "  #if TIDEMARK_PLANTED\n  f()\n  #endif\n")
    #expect(PlantedRules.conditions([condition]) == ["A.swift"])
  }

  @Test("tests that a table names and nobody has are seen, in tables of tests alone")
  func capabilities() {
    let tests = [SourceFile("A.swift", "struct ATests { func one() {} }")]
    func missing(_ table: String) -> [String] {
      CapabilityTables.missing(CapabilityTables.names(in: table, path: "A.md"), in: tests)
    }
    let head = "| Capability | Call | Test |\n|---|---|---|\n"
    #expect(missing(head + "| a | `b` | ATests.one, ATests |\n") == [])
    #expect(missing(head + "| a | b | ATests.two |") == ["A.md:3: ATests.two"])
    #expect(missing(head + "| a | b | ATests.one, BTests |") == ["A.md:3: BTests"])
    #expect(missing("| Today | Here | Example |\n|---|---|---|\n| a | b | CTests |") == [])
    #expect(missing(head + "\n| a | b | CTests |\n") == [])
  }

  @Test("unsafe files are seen, and need a reason")
  func reasons() {
    for line in [
      "unsafe f()", "final class A: @unchecked Sendable {}", "let p: UnsafeRawPointer",
      "nonisolated(unsafe) var x = 1", "@safe struct S {}", "internal import CZstd",
      "import Darwin",
    ] {
      let bare = SourceFile("A.swift", line)
      #expect(StyleRules.withoutReason([bare]) == ["A.swift"], "\(line)")
      #expect(StyleRules.withoutReason([SourceFile("A.swift", "// SAFETY: x\n" + line)]) == [])
    }
    let safe = SourceFile(
      "A.swift", "// unsafe\nlet text = \"unsafe\", unsafely = 1\nimport Crypto")
    #expect(StyleRules.unsafeFiles([safe]).isEmpty)
  }

  @Test("public types at the top are seen with whatever stands before them, others are not")
  func publicTypes() {
    let file = SourceFile(
      "Sources/Tidemark/A.swift",
      """
      public struct Label { public struct Query {} }
      @frozen public final class Path {}
      package struct Form {}
      struct Group {}
      extension Path { public enum Section {} }
      // public struct Text {}
      public protocol View: AnyObject {}
      """)
    #expect(file.publicTypes() == ["Label", "Path", "View"])
    #expect(NameRules.taken(["Label", "Form", "Query"], [file]) == ["\(file.path): Label"])
    let inside = SourceFile("Sources/LogtoolKit/A.swift", file.text)
    #expect(NameRules.taken(["Label"], [inside]) == [])
    #expect(NameRules.publicEngineTypes([engine("Log/A.swift", file.text), file]).count == 3)
  }
}
