Señor Presidente , quisiera empezar dando las gracias a la ponente por su excelente informe .
La Comisión no puede aceptar las enmiendas 14 y 22 , porque exceden el ámbito de aplicación de la directiva .
Seré breve , señora Presidenta , ya que casi todo lo que quería decir lo han dicho ya , y mejor , los oradores anteriores .
Llevamos desde el otoño pasado pidiéndole al Consejo esta información y seguimos esperando .
Se cierra el debate ; la votación tendrá lugar mañana a las doce del mediodía .
Esta tarde hemos oído muchísimas promesas , pero ni una sola cifra que nos permita juzgar si esas promesas se pueden cumplir .
Si los Estados miembros no llegan a un acuerdo antes de junio , los fondos se perderán para siempre .
Tiene la palabra su señoría durante un minuto para una cuestión de orden .
La Comisión de Asuntos Jurídicos , a la que se remitió el asunto en octubre , no emitió su opinión hasta la semana pasada , demasiado tarde para que se tuviera en cuenta .
Nadie en esta Cámara cree que el sistema actual pueda sobrevivir a otra ampliación .
Mi Grupo votará a favor de la solución de compromiso alcanzada con el Consejo el jueves pasado .
Si de verdad queremos reducir las emisiones , no podemos seguir construyendo autopistas como si el petróleo no fuera a acabarse nunca .
Ni siquiera se consultó a los pequeños agricultores , que son los más afectados por estos recortes .
Comparto la preocupación del orador anterior por las condiciones de trabajo de los camioneros .
Su señoría me ha preguntado si la Comisión tiene intención de llevar a Grecia ante el Tribunal de Justicia ; la respuesta es que ya lo ha hecho .
La ampliación ha costado mucho menos de lo que auguraban sus detractores y ha aportado mucho más de lo que reconocen .
En el informe que nos ocupa se pide a la Comisión que presente una propuesta legislativa antes de finales de año .
Como ponente de opinión de la Comisión de Cultura , lamento que en el texto final no se haya incluido ninguna de nuestras enmiendas relativas a las lenguas regionales .
El señor Lindqvist dijo ayer que las negociaciones iban bien ; hoy los periódicos nos cuentan lo contrario .
De las 732 enmiendas presentadas en comisión , menos de un centenar acabaron incorporándose al texto final .
Es inaceptable que , veinte años después del accidente de Chernóbil , quienes limpiaron el reactor sigan luchando por una pensión digna .
Como saben , el Parlamento ha rechazado dos veces esta propuesta y volverá a hacerlo si nada cambia .
El accidente demuestra lo poco que se ha hecho por mejorar la seguridad marítima desde la catástrofe del Prestige .
Cada año se estira más el presupuesto destinado a la acción exterior , porque el Consejo no deja de añadir nuevas prioridades sin decir nunca de dónde debe salir el dinero .
Gracias por su respuesta , señora Ministra , aunque no ha contestado a mi segunda pregunta .
Cada año , miles de jóvenes abandonan nuestras regiones porque no encuentran trabajo en ellas .
Muchos de los que hoy critican el euro olvidan lo cara que nos salía , en cada crisis , la existencia de quince monedas diferentes .
Por importantes que sean nuestros intereses económicos , los derechos humanos no deben sacrificarse en aras del comercio .
La Comisión de Presupuestos aprobó esta opinión por unanimidad , lo cual no sucede todos los días .
Mi pregunta va dirigida al Presidente en ejercicio del Consejo , que , si no me equivoco , todavía no ha dicho ni una palabra sobre la situación en Bielorrusia .
La sesión , que se había suspendido a la una y diez , se reanudó a las tres .
Sería injusto castigar a todo un pueblo por los crímenes de quienes lo gobiernan .
Sea cual sea el resultado del referéndum , los ciudadanos de ambos países tendrán que seguir conviviendo , y nuestro deber es ayudarlos a hacerlo .
Intervengo en nombre de mi colega , la señora Moreau , que se ha puesto enferma .
¿ Cómo vamos a explicar a los parados que hay dinero para los bancos y no para ellos ?
Los pescadores de Galicia y Bretaña no tienen la culpa del estado de los caladeros , y sin embargo es a ellos a quienes se les pide que paguen .
El acuerdo con Marruecos expira en marzo y , hasta ahora , no se ha hecho nada por renovarlo .
Celebramos que se hayan reforzado los poderes del Defensor del Pueblo , aunque no tanto como esperábamos .
Tenemos ante nosotros un texto que no satisface por completo a nadie , y quizá sea esa la mejor prueba de que es equilibrado .
Señora Presidenta , lamento constatar que el Consejo no está presente esta mañana .
La ponente señala con razón que las mujeres siguen ganando , por término medio , un 15 % menos que los hombres .
A falta de una política común , cada Estado miembro negocia con Rusia sus propios contratos y luego se pregunta por qué paga más que su vecino .
Lo sucedido en Génova no debe volver a repetirse , ni allí ni en ningún otro lugar de la Unión .
Tras escuchar a ambas partes , me inclino por apoyar la postura de la Comisión de Pesca .
A quienes piden que se levante el embargo de armas les recuerdo que hasta la fecha no se ha llevado a cabo ninguna de las reformas prometidas .
La pregunta número 12 , formulada por el señor Papadakis , se responderá por escrito , ya que su autor no está presente .
En mi propio país , hizo falta un escándalo para que el Gobierno reconociera que los controles habían fallado .
Nadie niega que se cometieran errores , pero quienes los cometieron han dimitido desde entonces y los procedimientos se han modificado para que no puedan repetirse .
Nadie puede afirmar en serio que esta cumbre , preparada a toda prisa , fuera un éxito .
Por tanto , nos abstendremos , con la esperanza de que el texto todavía pueda mejorarse en segunda lectura .
Señorías , lo que está en juego aquí no es solo el futuro de una compañía aérea , sino el sustento de más de once mil familias .
Tuve ocasión de visitar personalmente el campamento y me conmocionó lo que vi allí .
Sin la ayuda de voluntarios llegados de toda Europa , las playas de Galicia jamás se habrían limpiado .
La propuesta de la Presidencia recortaría casi en una cuarta parte los fondos de desarrollo rural , y ello justo en el momento en que nuevos miembros se incorporan a la Unión .
A los usuarios de telefonía móvil se les siguen cobrando precios desorbitados cuando viajan al extranjero .
Permítame , señor Presidente , que añada una observación personal sobre la situación en el País Vasco .
Desde 2001 llevamos gastados más de dos mil millones de euros en la reconstrucción de Afganistán , sin que nadie sepa decirnos exactamente adónde han ido a parar .
El principio de que quien contamina paga está consagrado en el Tratado y no debería ser negociable .
Puesto que se ha distribuido el acta de la sesión de ayer , ¿ hay alguna observación ?
El señor Svensson tiene razón cuando dice que hay que informar a los consumidores de lo que comen , pero las etiquetas que nadie entiende no sirven absolutamente para nada .
La propuesta de elevar la edad de jubilación chocó con la firme oposición de los sindicatos .
Espero que el Consejo muestre por fin el valor que le faltó en Niza .
Pido , por tanto , a todos los Grupos que apoyen la propuesta de resolución común , que envía una señal inequívoca a quienes pretenden dividirnos .
Que nadie se equivoque : este compromiso es lo mejor que podíamos conseguir dadas las circunstancias .
Por octavo año consecutivo , el Tribunal de Cuentas se ha negado a aprobar la contabilidad .
Aunque las normas sobre ayudas estatales se endurecieron en 1999 , varios Gobiernos todavía encuentran la manera de mantener con vida empresas que deberían haber cerrado hace mucho tiempo .
No corresponde a Bruselas decidir cómo deben organizar las autoridades locales sus servicios públicos .
El transporte de mercancías por ferrocarril , mucho menos contaminante que el transporte por carretera , lleva treinta años perdiendo terreno .
En nombre del Grupo Socialista , quisiera felicitar a la señora Jensen , que ha logrado conciliar posiciones que hace tan solo un mes parecían irreconciliables .
Su enmienda , señora Kowalska , fue rechazada por 41 votos contra 12 y 3 abstenciones .
Pocas cuestiones han dividido tan profundamente a este Parlamento como la patentabilidad de los programas informáticos .
La cuestión no es si confiamos en el actual Comisario , a quien todos respetamos , sino si el Tratado le otorga las competencias que reclama .
Quienes siembran el odio en internet no deben poder ampararse en el anonimato .
Como solo me quedan treinta segundos , me limitaré a una única pregunta : ¿ quién va a pagar ?
La adhesión de Turquía no se decidirá en Bruselas ni en Estrasburgo , sino en las calles de París , Viena y Nicosia , donde aún queda por convencer a la gente .
