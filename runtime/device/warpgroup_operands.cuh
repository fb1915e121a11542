// Operand lists of warpgroup products by n: the text of the n / 2 accumulators, the accumulators, and
// the names of the operands after them. Inline assembly knows operands by decimal numbers alone, so
// the preprocessor cannot count them.
#pragma once

#define TK_TEXT_8 "%0, %1, %2, %3"
#define TK_TEXT_16 TK_TEXT_8 ", %4, %5, %6, %7"
#define TK_TEXT_24 TK_TEXT_16 ", %8, %9, %10, %11"
#define TK_TEXT_32 TK_TEXT_24 ", %12, %13, %14, %15"
#define TK_TEXT_40 TK_TEXT_32 ", %16, %17, %18, %19"
#define TK_TEXT_48 TK_TEXT_40 ", %20, %21, %22, %23"
#define TK_TEXT_56 TK_TEXT_48 ", %24, %25, %26, %27"
#define TK_TEXT_64 TK_TEXT_56 ", %28, %29, %30, %31"
#define TK_TEXT_72 TK_TEXT_64 ", %32, %33, %34, %35"
#define TK_TEXT_80 TK_TEXT_72 ", %36, %37, %38, %39"
#define TK_TEXT_88 TK_TEXT_80 ", %40, %41, %42, %43"
#define TK_TEXT_96 TK_TEXT_88 ", %44, %45, %46, %47"
#define TK_TEXT_104 TK_TEXT_96 ", %48, %49, %50, %51"
#define TK_TEXT_112 TK_TEXT_104 ", %52, %53, %54, %55"
#define TK_TEXT_120 TK_TEXT_112 ", %56, %57, %58, %59"
#define TK_TEXT_128 TK_TEXT_120 ", %60, %61, %62, %63"
#define TK_TEXT_136 TK_TEXT_128 ", %64, %65, %66, %67"
#define TK_TEXT_144 TK_TEXT_136 ", %68, %69, %70, %71"
#define TK_TEXT_152 TK_TEXT_144 ", %72, %73, %74, %75"
#define TK_TEXT_160 TK_TEXT_152 ", %76, %77, %78, %79"
#define TK_TEXT_168 TK_TEXT_160 ", %80, %81, %82, %83"
#define TK_TEXT_176 TK_TEXT_168 ", %84, %85, %86, %87"
#define TK_TEXT_184 TK_TEXT_176 ", %88, %89, %90, %91"
#define TK_TEXT_192 TK_TEXT_184 ", %92, %93, %94, %95"
#define TK_TEXT_200 TK_TEXT_192 ", %96, %97, %98, %99"
#define TK_TEXT_208 TK_TEXT_200 ", %100, %101, %102, %103"
#define TK_TEXT_216 TK_TEXT_208 ", %104, %105, %106, %107"
#define TK_TEXT_224 TK_TEXT_216 ", %108, %109, %110, %111"
#define TK_TEXT_232 TK_TEXT_224 ", %112, %113, %114, %115"
#define TK_TEXT_240 TK_TEXT_232 ", %116, %117, %118, %119"
#define TK_TEXT_248 TK_TEXT_240 ", %120, %121, %122, %123"
#define TK_TEXT_256 TK_TEXT_248 ", %124, %125, %126, %127"

#define TK_FOUR(c, i) "+" c(acc[i]), "+" c(acc[i + 1]), "+" c(acc[i + 2]), "+" c(acc[i + 3])
#define TK_REGISTERS_8(c) TK_FOUR(c, 0)
#define TK_REGISTERS_16(c) TK_REGISTERS_8(c), TK_FOUR(c, 4)
#define TK_REGISTERS_24(c) TK_REGISTERS_16(c), TK_FOUR(c, 8)
#define TK_REGISTERS_32(c) TK_REGISTERS_24(c), TK_FOUR(c, 12)
#define TK_REGISTERS_40(c) TK_REGISTERS_32(c), TK_FOUR(c, 16)
#define TK_REGISTERS_48(c) TK_REGISTERS_40(c), TK_FOUR(c, 20)
#define TK_REGISTERS_56(c) TK_REGISTERS_48(c), TK_FOUR(c, 24)
#define TK_REGISTERS_64(c) TK_REGISTERS_56(c), TK_FOUR(c, 28)
#define TK_REGISTERS_72(c) TK_REGISTERS_64(c), TK_FOUR(c, 32)
#define TK_REGISTERS_80(c) TK_REGISTERS_72(c), TK_FOUR(c, 36)
#define TK_REGISTERS_88(c) TK_REGISTERS_80(c), TK_FOUR(c, 40)
#define TK_REGISTERS_96(c) TK_REGISTERS_88(c), TK_FOUR(c, 44)
#define TK_REGISTERS_104(c) TK_REGISTERS_96(c), TK_FOUR(c, 48)
#define TK_REGISTERS_112(c) TK_REGISTERS_104(c), TK_FOUR(c, 52)
#define TK_REGISTERS_120(c) TK_REGISTERS_112(c), TK_FOUR(c, 56)
#define TK_REGISTERS_128(c) TK_REGISTERS_120(c), TK_FOUR(c, 60)
#define TK_REGISTERS_136(c) TK_REGISTERS_128(c), TK_FOUR(c, 64)
#define TK_REGISTERS_144(c) TK_REGISTERS_136(c), TK_FOUR(c, 68)
#define TK_REGISTERS_152(c) TK_REGISTERS_144(c), TK_FOUR(c, 72)
#define TK_REGISTERS_160(c) TK_REGISTERS_152(c), TK_FOUR(c, 76)
#define TK_REGISTERS_168(c) TK_REGISTERS_160(c), TK_FOUR(c, 80)
#define TK_REGISTERS_176(c) TK_REGISTERS_168(c), TK_FOUR(c, 84)
#define TK_REGISTERS_184(c) TK_REGISTERS_176(c), TK_FOUR(c, 88)
#define TK_REGISTERS_192(c) TK_REGISTERS_184(c), TK_FOUR(c, 92)
#define TK_REGISTERS_200(c) TK_REGISTERS_192(c), TK_FOUR(c, 96)
#define TK_REGISTERS_208(c) TK_REGISTERS_200(c), TK_FOUR(c, 100)
#define TK_REGISTERS_216(c) TK_REGISTERS_208(c), TK_FOUR(c, 104)
#define TK_REGISTERS_224(c) TK_REGISTERS_216(c), TK_FOUR(c, 108)
#define TK_REGISTERS_232(c) TK_REGISTERS_224(c), TK_FOUR(c, 112)
#define TK_REGISTERS_240(c) TK_REGISTERS_232(c), TK_FOUR(c, 116)
#define TK_REGISTERS_248(c) TK_REGISTERS_240(c), TK_FOUR(c, 120)
#define TK_REGISTERS_256(c) TK_REGISTERS_248(c), TK_FOUR(c, 124)

#define TK_AFTER_8 "%4", "%5", "%6", "%7", "%8", "%9", "%10"
#define TK_AFTER_16 "%8", "%9", "%10", "%11", "%12", "%13", "%14"
#define TK_AFTER_24 "%12", "%13", "%14", "%15", "%16", "%17", "%18"
#define TK_AFTER_32 "%16", "%17", "%18", "%19", "%20", "%21", "%22"
#define TK_AFTER_40 "%20", "%21", "%22", "%23", "%24", "%25", "%26"
#define TK_AFTER_48 "%24", "%25", "%26", "%27", "%28", "%29", "%30"
#define TK_AFTER_56 "%28", "%29", "%30", "%31", "%32", "%33", "%34"
#define TK_AFTER_64 "%32", "%33", "%34", "%35", "%36", "%37", "%38"
#define TK_AFTER_72 "%36", "%37", "%38", "%39", "%40", "%41", "%42"
#define TK_AFTER_80 "%40", "%41", "%42", "%43", "%44", "%45", "%46"
#define TK_AFTER_88 "%44", "%45", "%46", "%47", "%48", "%49", "%50"
#define TK_AFTER_96 "%48", "%49", "%50", "%51", "%52", "%53", "%54"
#define TK_AFTER_104 "%52", "%53", "%54", "%55", "%56", "%57", "%58"
#define TK_AFTER_112 "%56", "%57", "%58", "%59", "%60", "%61", "%62"
#define TK_AFTER_120 "%60", "%61", "%62", "%63", "%64", "%65", "%66"
#define TK_AFTER_128 "%64", "%65", "%66", "%67", "%68", "%69", "%70"
#define TK_AFTER_136 "%68", "%69", "%70", "%71", "%72", "%73", "%74"
#define TK_AFTER_144 "%72", "%73", "%74", "%75", "%76", "%77", "%78"
#define TK_AFTER_152 "%76", "%77", "%78", "%79", "%80", "%81", "%82"
#define TK_AFTER_160 "%80", "%81", "%82", "%83", "%84", "%85", "%86"
#define TK_AFTER_168 "%84", "%85", "%86", "%87", "%88", "%89", "%90"
#define TK_AFTER_176 "%88", "%89", "%90", "%91", "%92", "%93", "%94"
#define TK_AFTER_184 "%92", "%93", "%94", "%95", "%96", "%97", "%98"
#define TK_AFTER_192 "%96", "%97", "%98", "%99", "%100", "%101", "%102"
#define TK_AFTER_200 "%100", "%101", "%102", "%103", "%104", "%105", "%106"
#define TK_AFTER_208 "%104", "%105", "%106", "%107", "%108", "%109", "%110"
#define TK_AFTER_216 "%108", "%109", "%110", "%111", "%112", "%113", "%114"
#define TK_AFTER_224 "%112", "%113", "%114", "%115", "%116", "%117", "%118"
#define TK_AFTER_232 "%116", "%117", "%118", "%119", "%120", "%121", "%122"
#define TK_AFTER_240 "%120", "%121", "%122", "%123", "%124", "%125", "%126"
#define TK_AFTER_248 "%124", "%125", "%126", "%127", "%128", "%129", "%130"
#define TK_AFTER_256 "%128", "%129", "%130", "%131", "%132", "%133", "%134"
